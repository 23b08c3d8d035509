//! The Kubernetes API: authenticate, authorise, admit, apply, store, watch.
