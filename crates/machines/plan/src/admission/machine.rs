//! VirtualMachines.

use fairway_admission::{Admission, Impact, Operation, Place, Refusal, Request, Verdict};
use serde_json::{Value, json};

use super::{INSTANCES, cause, is_leaving, is_ours, name, refusal, same, settings, verdict};
use crate::plan::{Capabilities, Origin, plan};
use crate::settings::NODES_PLUG;
use crate::settings::Settings;
use crate::unsupported::Effect;
use crate::validate::{self, Cause, CauseType};
use crate::view::{self, InstancetypeSpec, PreferenceSpec, VirtualMachine, VirtualMachineInstance};
use crate::{defaults, impact, instancetype, lifecycle};

mod find;
mod infer;
mod matcher;
mod storage;
mod volume_requests;

const MUTATOR: &str = "virtualmachines-mutator.kubevirt.io";
const VALIDATOR: &str = "virtualmachine-validator.kubevirt.io";
/// Judges what is written to the status.
const STATUS_VALIDATOR: &str = "kubevirt-crd-status-validator.kubevirt.io";

/// The kind.
pub(super) struct Machines;

impl Admission for Machines {
    fn complete(&self, request: &Request<'_>, vm: &mut Value) -> Verdict {
        if request.subresource.is_some() || is_leaving(vm) {
            return Ok(Vec::new());
        }
        verdict(MUTATOR, &matcher::check(vm, request.old))?;
        infer::matchers(request, vm).map_err(|why| Refusal::failed(MUTATOR, why))?;
        let preference = find::preference(request, vm).unwrap_or_default();
        defaults::machine(vm, &settings(request.world), preference.as_ref());
        Ok(Vec::new())
    }

    fn judge(&self, request: &Request<'_>, vm: &Value) -> Verdict {
        if request.operation == Operation::Delete || is_leaving(vm) {
            return Ok(Vec::new());
        }
        let settings = settings(request.world);
        if request.subresource.is_some() {
            verdict(STATUS_VALIDATOR, &volume_requests::check(request, vm, &settings))?;
            verdict(STATUS_VALIDATOR, &storage::in_progress(request, vm))?;
            return Ok(Vec::new());
        }
        let expanded = expand(request, vm, &settings)?;
        verdict(VALIDATOR, &spec(request, &expanded, &settings)?)?;
        verdict(VALIDATOR, &storage::template_namespaces(request, vm))?;
        verdict(VALIDATOR, &storage::in_progress(request, vm))?;
        verdict(VALIDATOR, &volume_requests::check(request, vm, &settings))?;
        Ok(warnings(request, vm, &expanded, &settings))
    }

    fn impact(&self, request: &Request<'_>, vm: &Value) -> Option<Impact> {
        let settings = settings(request.world).as_nodes_can(NODES_PLUG);
        let instance = request
            .world
            .get(Place::Here, INSTANCES, request.namespace, name(vm))
            .filter(|it| !matches!(it["status"]["phase"].as_str(), Some("Succeeded" | "Failed")));
        let whole = |vm: &Value| in_full(request, vm, instance.as_ref());
        let (before, after) = (
            request.old.map(whole),
            (request.operation != Operation::Delete).then(|| whole(vm)),
        );
        let change = impact::Change {
            before: before.as_ref(),
            after: after.as_ref(),
            running: instance.is_some(),
        };
        let verdict = impact::of(change, &settings);
        Some(told(&verdict, vm))
    }
}

/// The words for a dry run.
fn told(verdict: &impact::Verdict, vm: &Value) -> Impact {
    let mut reasons: Vec<String> = verdict.reasons.iter().map(|(_, why)| why.clone()).collect();
    let waits = vm["metadata"]["annotations"][lifecycle::RESTART_ANNOTATION] == "manual";
    if waits
        && verdict
            .reasons
            .iter()
            .any(|(it, _)| *it == impact::Impact::Restart)
    {
        reasons.push(format!(
            "{} is manual, so the restart waits for a person",
            lifecycle::RESTART_ANNOTATION
        ));
    }
    Impact {
        class: verdict.impact.to_string(),
        reason: reasons.join("; "),
    }
}

/// The machine with size and taste in its template, and with what its instance can grow to; as it is where they clash.
fn in_full(request: &Request<'_>, vm: &Value, instance: Option<&Value>) -> Value {
    let mut whole = vm.clone();
    if let (Ok(size), Ok(taste)) = (find::size(request, vm), find::preference(request, vm))
        && let Some(template) = whole.pointer_mut("/spec/template")
    {
        let mut expanded = template.clone();
        if instancetype::expand(&mut expanded, size.as_ref(), taste.as_ref()).is_ok() {
            *template = expanded;
        }
    }
    for path in [["domain", "cpu", "maxSockets"], ["domain", "memory", "maxGuest"]] {
        let most = instance.and_then(|it| crate::edit::at(&it["spec"], &path).cloned());
        if let (Some(most), Some(spec)) = (most, whole.pointer_mut("/spec/template/spec")) {
            crate::edit::set_if_unset(spec, &path, most);
        }
    }
    whole
}

/// A machine as it would start.
struct Expanded {
    vm: Value,
    size: Option<InstancetypeSpec>,
    taste: Option<PreferenceSpec>,
}

/// Puts size and taste into a copy, and the defaults that instances get.
fn expand(request: &Request<'_>, vm: &Value, settings: &Settings) -> Result<Expanded, Refusal> {
    let missing = |what: &str, field: &str, why: String| {
        let message = format!("Failure to find {what}: {why}");
        refusal(VALIDATOR, &[cause(CauseType::NotFound, field, message)])
    };
    let size = find::size(request, vm).map_err(|why| missing("instancetype", "spec.instancetype", why))?;
    let taste = find::preference(request, vm).map_err(|why| missing("preference", "spec.preference", why))?;
    if let Some(message) = instancetype::uneven_spread(size.as_ref(), taste.as_ref()) {
        let field = "instancetype.spec.cpu.guest";
        return Err(refusal(VALIDATOR, &[cause(CauseType::Invalid, field, message)]));
    }
    let mut vm = vm.clone();
    let Some(template) = vm.pointer_mut("/spec/template") else {
        return Ok(Expanded { vm, size, taste });
    };
    instancetype::expand(template, size.as_ref(), taste.as_ref()).map_err(|clashes| {
        let told = |field: &String| {
            let message = format!("VM field(s) {field} conflicts with selected instance type");
            cause(CauseType::Invalid, field.clone(), message)
        };
        let causes: Vec<Cause> = clashes.0.iter().map(told).collect();
        refusal(VALIDATOR, &causes)
    })?;
    let spec = &mut template["spec"];
    defaults::instance_spec(spec, settings).map_err(|why| Refusal::failed(VALIDATOR, why.to_string()))?;
    Ok(Expanded { vm, size, taste })
}

fn spec(request: &Request<'_>, expanded: &Expanded, settings: &Settings) -> Result<Vec<Cause>, Refusal> {
    let vm: VirtualMachine = view::read("VirtualMachine", &expanded.vm)
        .map_err(|error| Refusal::failed(VALIDATOR, error.to_string()))?;
    if let Some(template) = &vm.spec.template
        && let Err(error) =
            instancetype::check_requirements(expanded.size.as_ref(), expanded.taste.as_ref(), &template.spec)
    {
        let fields = error.fields.join(", ");
        return Ok(vec![cause(CauseType::NotFound, fields, error.to_string())]);
    }
    Ok(validate::virtual_machine(&vm.spec, settings, is_ours(request)))
}

/// What is accepted and worth knowing. Only who brings something is told of it.
fn warnings(request: &Request<'_>, vm: &Value, expanded: &Expanded, settings: &Settings) -> Vec<String> {
    let read: Option<VirtualMachine> = view::read("VirtualMachine", vm).ok();
    let mut warnings = read.map(|vm| validate::warnings(&vm.spec)).unwrap_or_default();
    let is_new = request.old.is_none_or(|old| !same(&old["spec"], &vm["spec"]));
    if is_ours(request) || !is_new {
        return warnings;
    }
    let template = &expanded.vm["spec"]["template"];
    let mut instance = json!({"metadata": vm["metadata"], "spec": template["spec"]});
    if let Some(annotations) = template["metadata"].get("annotations") {
        instance["metadata"]["annotations"] = annotations.clone();
    }
    if defaults::instance(&mut instance, settings).is_ok() {
        warnings.extend(unserved(&instance, "spec.template.spec", settings));
    }
    warnings
}

/// Fields that no node here acts on. What depends on the node is told by a condition of the instance.
pub(super) fn unserved(instance: &Value, path: &str, settings: &Settings) -> Vec<String> {
    let Ok(instance) = view::read::<VirtualMachineInstance>("VirtualMachineInstance", instance) else {
        return Vec::new();
    };
    let able = Capabilities {
        kvm: true,
        hugepages: [2 << 20, 1 << 30].into(),
        dedicated_cpus: true,
        tpm: true,
        uefi: true,
        secure_boot: true,
        // Newer than any.
        qemu: (u32::MAX, 0),
    };
    let planned = plan(&instance, Origin::default(), &able, settings);
    let told = planned.unsupported.into_iter().map(|wish| match wish.effect {
        Effect::Ignored => format!("{path}.{}: no effect: {}", wish.field, wish.reason),
        Effect::Replaced => format!("{path}.{}: {}", wish.field, wish.reason),
        Effect::Blocks => format!(
            "{path}.{}: the machine will not start: {}",
            wish.field, wish.reason
        ),
    });
    told.collect()
}
