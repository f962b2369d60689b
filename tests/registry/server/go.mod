module npstream.test/registry

go 1.23.2

require (
	github.com/conduitio/conduit-commons v0.5.0
	github.com/conduitio/conduit-schema-registry v0.2.2
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/matryer/is v1.4.1 // indirect
	github.com/twmb/franz-go/pkg/sr v1.2.0 // indirect
)

// The module's linter, with two hundred modules behind it; nothing of it is compiled.
exclude github.com/golangci/golangci-lint v1.61.0
