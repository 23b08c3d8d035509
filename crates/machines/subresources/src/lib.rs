//! KubeVirt's subresources.
mod decide;
mod options;
mod refusal;
