//! The pure core of the GitOps engine.
