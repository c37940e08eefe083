// Package v1 imitates k8s.io/apimachinery/pkg/apis/meta/v1 as far as text/template can see it.
package v1

import (
	"time"

	"gotemplate/types"
)

// Time embeds a time.Time, as in Kubernetes.
type Time struct {
	time.Time
}

// OwnerReference has the fields of the Kubernetes type in their order.
type OwnerReference struct {
	APIVersion         string
	Kind               string
	Name               string
	UID                types.UID
	Controller         *bool
	BlockOwnerDeletion *bool
}

// ObjectMeta has the fields of the Kubernetes type in their order.
type ObjectMeta struct {
	Name                       string
	GenerateName               string
	Namespace                  string
	SelfLink                   string
	UID                        types.UID
	ResourceVersion            string
	Generation                 int64
	CreationTimestamp          Time
	DeletionTimestamp          *Time
	DeletionGracePeriodSeconds *int64
	Labels                     map[string]string
	Annotations                map[string]string
	OwnerReferences            []OwnerReference
	Finalizers                 []string
}

// GetName has a pointer receiver, as all methods of the Kubernetes type.
func (m *ObjectMeta) GetName() string { return m.Name }
