//go:build test_performance

// Put beside Karpenter's scheduling benchmark by `cargo xtask bench pack`. It makes the same pods, the same
// scheduler and the same call as that benchmark, by its own functions, and differs in two things: the time on
// the processor is measured besides that on the wall, around the call alone; and the pods are written to a file,
// so that nodemolt packs the very same ones.

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
	if os.Getenv("PEER_MIX") == "preferences" {
		pods = makePreferencePods
	}
	all := pods(count)
	if err := writePods(os.Getenv("PEER_FILE"), all); err != nil {
		t.Fatal(err)
	}
	ctx = options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), test.Options())
	scheduler, err := setupScheduler(ctx, all, scheduling.NumConcurrentReconciles(5))
	if err != nil {
		t.Fatal(err)
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

// All of the benchmark's selectors have one label.
func labels(selector map[string]string) string {
	for key, value := range selector {
		return key + ":" + value
	}
	return ""
}
