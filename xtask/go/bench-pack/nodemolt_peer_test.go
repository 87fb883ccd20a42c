//go:build test_performance

// Put beside Karpenter's scheduling benchmark by `cargo xtask bench pack`. It makes the same pods, the same
// scheduler and the same call as that benchmark, by its own functions, and differs in three things: the time on
// the processor is measured besides that on the wall, around the call alone; the pods are written to a file,
// so that nodemolt packs the very same ones; and so is the answer, so that a checker can judge it.

package scheduling_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/test"
)

func TestNodemoltPeer(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv("PEER_PODS"))
	if err != nil {
		t.Skip("for `cargo xtask bench pack` only")
	}
	pods := makeDiversePods
	told := []scheduling.Options{scheduling.NumConcurrentReconciles(5)}
	switch os.Getenv("PEER_MIX") {
	case "preferences":
		pods = makePreferencePods
	case "ignored":
		pods = makePreferencePods
		told = append(told, scheduling.IgnorePreferences)
	}
	all := pods(count)
	if err := writePods(os.Getenv("PEER_FILE"), all); err != nil {
		t.Fatal(err)
	}
	ctx = options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), test.Options())
	scheduler, err := setupScheduler(ctx, all, told...)
	if err != nil {
		t.Fatal(err)
	}
	// `Solve` sorts the pods: their lines in the file are those of before.
	lines := map[types.UID]int{}
	for at, pod := range all {
		lines[pod.UID] = at
	}
	cpu, started := onProcessor(), time.Now()
	results, err := scheduler.Solve(ctx, all)
	wall, cpu := time.Since(started), onProcessor()-cpu
	if err != nil {
		t.Fatal(err)
	}
	placed := 0
	for _, node := range results.NewNodeClaims {
		placed += len(node.Pods)
	}
	fmt.Printf("peer pods=%d nodes=%d unplaced=%d wall=%f cpu=%f peak=%d\n",
		len(all), len(results.NewNodeClaims), len(all)-placed, wall.Seconds(), cpu.Seconds(), peakMebibytes())
	if err := writeAnswer(os.Getenv("PEER_ANSWER"), all, lines, results.NewNodeClaims); err != nil {
		t.Fatal(err)
	}
}

func onProcessor() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func peakMebibytes() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return usage.Maxrss / 1024
}

// One pod to a line, words separated by blanks; crates/fit/benches/peer.rs reads them.
func writePods(path string, pods []*corev1.Pod) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	for _, pod := range pods {
		requests := pod.Spec.Containers[0].Resources.Requests
		words := []string{
			fmt.Sprintf("cpu=%d", requests.Cpu().MilliValue()),
			fmt.Sprintf("memory=%d", requests.Memory().Value()),
		}
		for key, value := range pod.Labels {
			if key == "my-label" || key == "my-affininity" || key == "app" {
				words = append(words, "label="+key+":"+value)
			}
		}
		for _, it := range pod.Spec.TopologySpreadConstraints {
			words = append(words, "spread="+it.TopologyKey+":"+labels(it.LabelSelector.MatchLabels))
		}
		if affinity := pod.Spec.Affinity; affinity != nil {
			if affinity.PodAffinity != nil {
				for _, it := range affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
					words = append(words, "near="+it.TopologyKey+":"+labels(it.LabelSelector.MatchLabels))
				}
			}
			if affinity.PodAntiAffinity != nil {
				for _, it := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
					words = append(words, "away="+it.TopologyKey+":"+labels(it.LabelSelector.MatchLabels))
				}
				for _, it := range affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
					words = append(words, fmt.Sprintf("rather-away=%d:%s:%s", it.Weight,
						it.PodAffinityTerm.TopologyKey, labels(it.PodAffinityTerm.LabelSelector.MatchLabels)))
				}
			}
			if affinity.NodeAffinity != nil {
				for _, it := range affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
					asked := it.Preference.MatchExpressions[0]
					words = append(words, fmt.Sprintf("rather-on=%d:%s:%s", it.Weight, asked.Key, strings.Join(asked.Values, "|")))
				}
			}
		}
		fmt.Fprintln(out, strings.Join(words, " "))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return file.Close()
}

// First the pods by the numbers of their lines, in the order in which Karpenter took them up. Then one node to a
// line: its pods, its instance types and what its claim requires.
func writeAnswer(path string, queue []*corev1.Pod, lines map[types.UID]int, nodes []*scheduling.NodeClaim) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	numbers := func(pods []*corev1.Pod) string {
		var all []string
		for _, pod := range pods {
			all = append(all, strconv.Itoa(lines[pod.UID]))
		}
		return strings.Join(all, "|")
	}
	fmt.Fprintln(out, "queue="+numbers(queue))
	for _, node := range nodes {
		var names []string
		for _, it := range node.InstanceTypeOptions {
			names = append(names, it.Name)
		}
		words := []string{"pods=" + numbers(node.Pods), "types=" + strings.Join(names, "|")}
		for key, it := range node.Requirements {
			words = append(words, fmt.Sprintf("require=%s:%s:%s", key, it.Operator(), strings.Join(it.Values(), "|")))
		}
		fmt.Fprintln(out, strings.Join(words, " "))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return file.Close()
}

// All of the benchmark's selectors have one label.
func labels(selector map[string]string) string {
	for key, value := range selector {
		return key + ":" + value
	}
	return ""
}
