//! RBAC: the decision on a request, with its reason.
