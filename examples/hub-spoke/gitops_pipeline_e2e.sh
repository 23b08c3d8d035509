#!/usr/bin/env bash
# From an empty hypervisor to a hub with two spokes, in five phases. Each phase ends when what it was for is there, and
# can be run again.
#
#   ./gitops_pipeline_e2e.sh [--dry-run] [PHASE...]      PHASE: 1 to 5; without any, all of them in order
#
# Needs on the hypervisor: virsh, virt-install, haproxy, dnsmasq, sushy-emulator, oc, envsubst. Kubeconfigs are
# KUBECONFIGS/CLUSTER; that of the hub comes from its installation, those of the spokes are fetched from the hub.
# PULL_SECRET names the pull secret's file.
set -euo pipefail
cd "$(dirname "$0")"

kubeconfigs=${KUBECONFIGS:-$HOME/kubeconfigs}
pull_secret=${PULL_SECRET:-$HOME/pull-secret.json}
spokes=(etl4 etl6)
masters=(0 1 2)
dry_run=false

# The number that a spoke's addresses begin with; its machines, their ids and network cards are numbered from it, as in
# clusters/hub/overlays/cluster-SPOKE/values.yaml.
declare -A first=([etl4]=160 [etl6]=170)

run() {
    if $dry_run; then
        printf '+'
        printf ' %q' "$@"
        printf '\n'
    else
        "$@"
    fi
}

on() { # CLUSTER ARGUMENT...: oc on that cluster
    local cluster=$1
    shift
    run oc --kubeconfig "$kubeconfigs/$cluster" "$@"
}

until_ready() { # SECONDS WHAT COMMAND...: tries again until the command succeeds
    local deadline=$((SECONDS + $1)) what=$2
    shift 2
    if $dry_run; then
        echo "+ wait for $what"
        return
    fi
    until "$@" >/dev/null 2>&1; do
        if ((SECONDS > deadline)); then
            echo "gave up waiting for $what; the last answer was:" >&2
            "$@" >&2 || true
            return 1
        fi
        sleep 15
    done
}

variables_of() { # CLUSTER: its variables as assignments
    sed -n '/^data:/,$ s/^  \([A-Z_]*\): \(.*\)$/\1=\2/p' ".bootstrap/environment/$1.yaml"
}

apply_root_application() { # CLUSTER
    if $dry_run; then
        echo "+ apply .bootstrap/root-application.yaml to $1"
        return
    fi
    env $(variables_of "$1") envsubst <.bootstrap/root-application.yaml |
        oc --kubeconfig "$kubeconfigs/$1" apply -f -
}

# Argo CD with the plugin and its variables, and the Application that begins everything.
configure_argocd() { # CLUSTER
    until_ready 900 "the GitOps operator on $1" \
        oc --kubeconfig "$kubeconfigs/$1" get crd argocds.argoproj.io applications.argoproj.io
    on "$1" apply -f ".bootstrap/environment/$1.yaml" -f .bootstrap/argocd.yaml -f .bootstrap/cluster-rolebinding.yaml
    until_ready 900 "Argo CD on $1" \
        oc --kubeconfig "$kubeconfigs/$1" -n openshift-gitops rollout status deployment/openshift-gitops-repo-server --timeout=10s
    apply_root_application "$1"
}

applications_are_healthy() { # CLUSTER
    local states
    states=$(oc --kubeconfig "$kubeconfigs/$1" -n openshift-gitops get applications \
        -o jsonpath='{range .items[*]}{.metadata.name} {.status.sync.status} {.status.health.status}{"\n"}{end}')
    [[ $states == *root-applications* ]] && ! grep -v ' Synced Healthy$' <<<"$states"
}

make_machine() { # NAME UUID MAC
    if ! $dry_run && virsh dominfo "$1" >/dev/null 2>&1; then
        return
    fi
    run virt-install --name "$1" --uuid "$2" --memory 24576 --vcpus 8 --cpu host-passthrough --os-variant rhel9.4 \
        --disk size=120 --network "network=clusters,mac=$3" --network network=clusters --boot uefi --noautoconsole --import --noreboot
}

phase_1() { # machines, names, power control
    if $dry_run || ! virsh net-info clusters >/dev/null 2>&1; then
        run virsh net-define .infrastructure/network.xml
        run virsh net-autostart clusters
        run virsh net-start clusters
    fi
    local spoke n base
    for n in "${masters[@]}"; do
        make_machine "hub-master-$n" "$(printf '00000000-0000-4000-8000-0000%04d%04d' 20 "$n")" "52:54:00:87:14:0$n"
    done
    for spoke in "${spokes[@]}"; do
        base=${first[$spoke]}
        for n in "${masters[@]}"; do
            make_machine "$spoke-master-$n" "$(printf '00000000-0000-4000-8000-0000%04d%04d' "$base" "$n")" \
                "$(printf '52:54:00:87:%02x:%02x' "$base" "$n")"
        done
    done
    run install -m 0644 .infrastructure/dnsmasq.conf /etc/dnsmasq.d/clusters.conf
    run install -m 0644 .infrastructure/haproxy.cfg /etc/haproxy/haproxy.cfg
    run systemctl restart dnsmasq haproxy
    run systemd-run --unit sushy-emulator --collect sushy-emulator --interface 0.0.0.0 --port 8000 --libvirt-uri qemu:///system
    until_ready 60 "the power control of 9 machines" \
        bash -c '[[ $(curl -fs http://10.8.3.197:8000/redfish/v1/Systems | grep -o "@odata.id" | wc -l) -ge 10 ]]'
    until_ready 60 "the names of all clusters" \
        bash -c 'for n in ocp3m0w-ic4s20 etl4 etl6; do getent hosts "api.$n.qe.lab.redhat.com" || exit 1; done'
}

phase_2() { # the hub: its operator, its Argo CD, and everything that comes from here
    on hub apply -f .bootstrap/subscription.yaml
    configure_argocd hub
    on hub -n openshift-config set data secret/pull-secret "--from-file=.dockerconfigjson=$pull_secret"
    until_ready 7200 "the hub's Applications" applications_are_healthy hub
}

phase_3() { # the spokes: installed by the hub out of clusters/hub/overlays/cluster-*
    local spoke
    for spoke in "${spokes[@]}"; do
        until_ready 7200 "the installation of $spoke" \
            oc --kubeconfig "$kubeconfigs/hub" -n "$spoke" wait --for=condition=Provisioned "clusterdeployment/$spoke" --timeout=10s
        until_ready 1800 "$spoke to join the hub" \
            oc --kubeconfig "$kubeconfigs/hub" wait --for=condition=ManagedClusterConditionAvailable "managedcluster/$spoke" --timeout=10s
    done
}

fetch_kubeconfig() { # SPOKE
    if $dry_run; then
        echo "+ fetch the kubeconfig of $1 from the hub"
        return
    fi
    local secret
    secret=$(oc --kubeconfig "$kubeconfigs/hub" -n "$1" get "clusterdeployment/$1" \
        -o jsonpath='{.spec.clusterMetadata.adminKubeconfigSecretRef.name}')
    (umask 077 && oc --kubeconfig "$kubeconfigs/hub" -n "$1" extract "secret/$secret" --keys=kubeconfig --to=- \
        >"$kubeconfigs/$1" 2>/dev/null)
}

phase_4() { # the spokes' own Argo CD; a policy of the hub has brought its operator
    local spoke
    for spoke in "${spokes[@]}"; do
        fetch_kubeconfig "$spoke"
        configure_argocd "$spoke"
    done
}

phase_5() { # what the spokes run
    local spoke
    for spoke in "${spokes[@]}"; do
        until_ready 7200 "the Applications of $spoke" applications_are_healthy "$spoke"
    done
}

phases=()
for argument in "$@"; do
    case $argument in
        --dry-run) dry_run=true ;;
        [1-5]) phases+=("$argument") ;;
        *)
            echo "usage: $0 [--dry-run] [PHASE...], PHASE from 1 to 5" >&2
            exit 2
            ;;
    esac
done
if [[ ${#phases[@]} -eq 0 ]]; then
    phases=(1 2 3 4 5)
fi
for phase in "${phases[@]}"; do
    echo "== phase $phase"
    "phase_$phase"
done
