//! The bounds that keep hostile expressions cheap: Kubernetes' own figures, so that what it admits is admitted here.

/// What one evaluation of a validation rule may cost.
pub const PER_CALL_LIMIT: u64 = 1_000_000;

/// What all rules of one object may cost together.
pub const RUNTIME_CEL_COST_BUDGET: u64 = 10_000_000;

/// The longest expression, in Unicode code points.
pub const MAX_EXPRESSION_CODE_POINTS: usize = 100_000;

/// How deep brackets, ternaries and unary operators may nest in the source.
pub const MAX_NESTING: usize = 250;

/// How deep the expression tree may become; chains such as `a.b.c` and `1 + 1 + 1` nest without brackets.
pub const MAX_TREE_DEPTH: u16 = 250;

/// The size of the largest request, from which unbounded schemas get their size bounds.
pub const MAX_REQUEST_SIZE_BYTES: u64 = 3 * 1024 * 1024;

/// How much memory a compiled regular expression may take.
pub const REGEX_SIZE_LIMIT: usize = 1 << 20;

/// Elementary steps (elements compared, bytes copied) of one evaluation. CEL prices some operations, such as list
/// concatenation and deep equality, at one unit whatever their size; this bounds what they may really do.
pub(crate) const MAX_WORK: u64 = 64_000_000;
