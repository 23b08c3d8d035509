//! KubeVirt's subresources.
