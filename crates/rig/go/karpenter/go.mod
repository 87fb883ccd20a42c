module nodemolt.dev/karpenter

go 1.26.0

// Only the CRDs in them are read: nothing here is compiled.
require (
	github.com/aws/karpenter-provider-aws v1.14.1
	sigs.k8s.io/karpenter v1.14.1
)
