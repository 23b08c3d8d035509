module fairway.dev/tests/notifications

go 1.24

require github.com/expr-lang/expr v1.17.7
