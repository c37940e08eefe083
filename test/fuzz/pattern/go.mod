module patternfuzz

go 1.21

require gotemplate v0.0.0

replace gotemplate => ../../data/gotemplate
