#!/bin/bash
# Stands in for AL2's /etc/eks/bootstrap.sh: it takes the same words, writes the same files, and ends by
# enabling and starting the kubelet. FAIL=early and FAIL=late make it fail before and after that.
set -o errexit -o nounset -o pipefail
echo "bootstrap.sh" >> "$ROOT/state/calls"
printf '%s\0' "$@" > "$ROOT/state/words"

names=()
use_max_pods=true extra='' dns=''
while [ $# -gt 0 ]; do
  case $1 in
    --use-max-pods) use_max_pods=$2; shift 2 ;;
    --kubelet-extra-args) extra=$2; shift 2 ;;
    --dns-cluster-ip) dns=$2; shift 2 ;;
    --apiserver-endpoint | --b64-cluster-ca | --ip-family | --service-ipv6-cidr | --local-disks) shift 2 ;;
    *) names+=("$1"); shift ;; # a word that it does not know is the cluster's name
  esac
done
echo "${names[0]}" > "$ROOT/state/cluster"
[ "${FAIL:-}" != early ] || exit 7

config=$ROOT/etc/kubernetes/kubelet/kubelet-config.json
echo '{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1",
  "authentication":{"anonymous":{"enabled":false},"webhook":{"cacheTTL":"2m0s","enabled":true}},
  "featureGates":{"RotateKubeletServerCertificate":true},"serializeImagePulls":false}' > "$config"
echo "$(jq --arg dns "$dns" '.clusterDNS=($dns|split(","))
  | .evictionHard={"memory.available":"100Mi","nodefs.available":"10%"}
  | .kubeReserved={"cpu":"70m","memory":"442Mi"} | .providerID="aws:///eu-west-1a/i-1"' "$config")" > "$config"
[ "$use_max_pods" != true ] || echo "$(jq '.maxPods=17' "$config")" > "$config"
units=$ROOT/etc/systemd/system/kubelet.service.d
mkdir -p "$units"
printf "[Service]\nEnvironment='KUBELET_ARGS=%s'\n" '--node-ip=10.0.0.1 --v=2' > "$units/10-kubelet-args.conf"
[ -z "$extra" ] || printf "[Service]\nEnvironment='KUBELET_EXTRA_ARGS=%s'\n" "$extra" > "$units/30-kubelet-extra-args.conf"
systemctl daemon-reload
systemctl enable kubelet
systemctl start kubelet
[ "${FAIL:-}" != late ] || exit 9
