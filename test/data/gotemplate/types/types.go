// Package types has the one named type that ObjectMeta uses from k8s.io/apimachinery/pkg/types.
package types

// UID is a string of its own type, as in Kubernetes.
type UID string
