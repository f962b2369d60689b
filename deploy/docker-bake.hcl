# The image for both processors, in one build:
#
#   docker buildx bake -f deploy/docker-bake.hcl --push --set npstream.tags=registry.example/npstream:1.0.0
#
# arm64 is built on an arm64 builder, or under emulation, where compiling takes some minutes.

variable "BASE" {
  default = "python:3.11-slim-bookworm"
}

variable "VERSION" {
  default = "0"
}

variable "REVISION" {
  default = "unknown"
}

variable "SOURCE" {
  default = ""
}

group "default" {
  targets = ["npstream"]
}

target "npstream" {
  context    = "."
  dockerfile = "deploy/Dockerfile"
  platforms  = ["linux/amd64", "linux/arm64"]
  args = {
    BASE     = BASE
    VERSION  = VERSION
    REVISION = REVISION
    SOURCE   = SOURCE
  }
}
