//! CEL with Kubernetes' libraries and a run-time cost budget.
