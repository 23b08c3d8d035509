#!/usr/bin/env bash
# Builds programs of other projects that Fairway is tested and measured against, from the Go tool modules
# committed under bench/peers and tests, into .tools/bin. A program is built again only when its module or its flags
# change. One module per program: each gets the dependency versions that its own project released it with.
#
#   scripts/peers.sh kubectl etcd kube-apiserver
#
# The modules repeat the `replace` lines of the program's own go.mod, which Go ignores in a dependency.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
bin="$root/.tools/bin"
jobs=${FAIRWAY_PEER_JOBS:-$(nproc)}
# The compiler collects garbage less often: about a quarter less CPU time, for more memory.
export GOGC=${GOGC:-800}

package_of() {
    case $1 in
        kubectl | kube-apiserver | kube-controller-manager) echo "k8s.io/kubernetes/cmd/$1" ;;
        etcd) echo go.etcd.io/etcd/server/v3 ;;
        crossplane) echo github.com/crossplane/crossplane/v2/cmd/crossplane ;;
        argocd) echo github.com/argoproj/argo-cd/v3/cmd ;;
        kustomize) echo sigs.k8s.io/kustomize/kustomize/v5 ;;
        tofu) echo github.com/opentofu/opentofu/cmd/tofu ;;
        virtctl) echo kubevirt.io/kubevirt/cmd/virtctl ;;
        terraform-provider-kubernetes) echo github.com/hashicorp/terraform-provider-kubernetes ;;
        # A program of our own, made of Kubernetes' tests.
        kubernetes-e2e) echo . ;;
        *)
            echo "peers.sh: unknown program '$1' (known: kubectl, etcd, kube-apiserver, kube-controller-manager, crossplane, argocd, kustomize, tofu, terraform-provider-kubernetes, virtctl, kubernetes-e2e)" >&2
            return 1
            ;;
    esac
}

module_of() {
    case $1 in
        kubernetes-e2e) echo "$root/tests/$1" ;;
        *) echo "$root/bench/peers/$1" ;;
    esac
}

# Kubernetes programs and virtctl take their version from the linker; without it they report a placeholder, which
# clients compare with the server's.
linker_flags_of() {
    local flags='-s -w' version major minor variable=k8s.io/component-base/version
    if [[ $1 == kube* ]]; then
        version=$(cd "$(module_of "$1")" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
        IFS=. read -r major minor _ <<<"${version#v}"
        flags+=" -X $variable.gitVersion=$version -X $variable.gitMajor=$major -X $variable.gitMinor=$minor"
        flags+=" -X $variable.gitTreeState=clean"
    elif [[ $1 == virtctl ]]; then
        version=$(cd "$(module_of "$1")" && go list -m -f '{{.Version}}' kubevirt.io/kubevirt)
        flags+=" -X kubevirt.io/client-go/version.gitVersion=$version -X kubevirt.io/client-go/version.gitTreeState=clean"
    fi
    echo "$flags"
}

build() {
    local name=$1 module package flags stamp
    module=$(module_of "$name")
    package=$(package_of "$name")
    flags=$(linker_flags_of "$name")
    stamp=$( (find "$module" -maxdepth 1 \( -name 'go.*' -o -name '*.go' \) -print0 | sort -z | xargs -0 cat && echo "$package $flags") | sha256sum | cut -d' ' -f1)
    if [[ -x $bin/$name && $(cat "$bin/.$name.stamp" 2>/dev/null) == "$stamp" ]]; then
        return
    fi
    echo "peers.sh: building $name (first time only)" >&2
    mkdir -p "$bin"
    (cd "$module" && CGO_ENABLED=0 go build -p "$jobs" -mod=readonly -trimpath -ldflags "$flags" -o "$bin/$name.new" "$package")
    mv "$bin/$name.new" "$bin/$name"
    echo "$stamp" >"$bin/.$name.stamp"
}

if [[ $# -eq 0 ]]; then
    echo "usage: scripts/peers.sh PROGRAM..." >&2
    exit 2
fi
for name in "$@"; do
    build "$name"
done
