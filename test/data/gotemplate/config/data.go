// Package config has what a pattern sees as ".".
package config

import v1 "gotemplate/v1"

// PatternData is the data of a pattern.
type PatternData struct {
	PVName string
	PVC    v1.ObjectMeta
}
