// Package clientgo holds what client-go and controller-runtime do on a Fairway: the tests need KUBECONFIG to name an
// administrator of an otherwise unused one. tests/controllers/run.py builds and starts them.
package clientgo
