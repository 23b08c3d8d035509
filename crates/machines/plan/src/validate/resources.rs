//! Memory and processor time that a machine asks for.

use super::Causes;
use crate::settings::Settings;
use crate::view::{Amount, InstanceSpec};
use fairway_kernel_scalar::quantity::{FORMAT_ERROR, Quantity};

fn text(amount: Option<&Amount>) -> String {
    amount.map_or_else(|| "0".to_owned(), |it| it.text())
}

pub(super) fn memory(path: &str, spec: &InstanceSpec, settings: &Settings, causes: &mut Causes) {
    let resources = &spec.domain.resources;
    let request = resources.requests.get("memory");
    let limit = resources.limits.get("memory");
    let (request_path, limit_path) = (
        format!("{path}.domain.resources.requests.memory"),
        format!("{path}.domain.resources.limits.memory"),
    );
    let asked = request.map_or(0, |it| it.value());
    if asked < 0 {
        not_negative(&request_path, &text(request), causes);
    } else if asked > 0 && asked < 1_000_000 {
        let message = format!(
            "{request_path} '{}': must be greater than or equal to 1M.",
            text(request)
        );
        causes.invalid(&request_path, message);
    }
    let most = limit.map_or(0, |it| it.value());
    if most < 0 {
        not_negative(&limit_path, &text(limit), causes);
    }
    if most > 0 && asked > most {
        let message = format!(
            "{request_path} '{}' is greater than {limit_path} '{}'",
            text(request),
            text(limit)
        );
        causes.invalid(&request_path, message);
    }
    hugepages(path, spec, &request_path, causes);
    guest_memory(path, spec, settings, &limit_path, causes);
}

fn not_negative(path: &str, value: &str, causes: &mut Causes) {
    causes.invalid(
        path,
        format!("{path} '{value}': must be greater than or equal to 0."),
    );
}

fn hugepages(path: &str, spec: &InstanceSpec, request_path: &str, causes: &mut Causes) {
    let Some(pages) = spec.domain.memory.as_ref().and_then(|it| it.hugepages.as_ref()) else {
        return;
    };
    let size_path = format!("{path}.domain.hugepages.size");
    let Some(size) = Quantity::parse(&pages.page_size) else {
        causes.invalid(
            &size_path,
            format!("{size_path} '{}': {FORMAT_ERROR}", pages.page_size),
        );
        return;
    };
    let request = spec.domain.resources.requests.get("memory");
    let asked = request.map_or(0, |it| it.value());
    if asked < size.value() {
        let message = format!(
            "{request_path} '{}' must be equal to or larger than page size {size_path} '{}'",
            text(request),
            pages.page_size
        );
        causes.invalid(request_path, message);
    } else if size.value() > 0 && asked % size.value() != 0 {
        let message = format!(
            "{request_path} '{}' is not a multiple of the page size {size_path} '{}'",
            text(request),
            pages.page_size
        );
        causes.invalid(request_path, message);
    }
}

fn guest_memory(path: &str, spec: &InstanceSpec, settings: &Settings, limit_path: &str, causes: &mut Causes) {
    let Some(guest) = spec.domain.memory.as_ref().and_then(|it| it.guest) else {
        return;
    };
    let limit = spec.domain.resources.limits.get("memory");
    let most = limit.map_or(0, |it| it.value());
    // A machine that can grow outgrows its limit.
    if settings.live_update || most == 0 || guest.value() <= most {
        return;
    }
    let guest_path = format!("{path}.domain.memory.guest");
    let message = format!(
        "{guest_path} '{}' must be equal to or less than the memory limit {limit_path} '{}'",
        guest.text(),
        text(limit)
    );
    causes.invalid(guest_path, message);
}

pub(super) fn memory_is_given(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let memory = spec.domain.memory.as_ref();
    let given = memory.is_some_and(|it| it.guest.is_some() || it.hugepages.is_some());
    if given || spec.domain.resources.request("memory") != 0 {
        return;
    }
    let message = format!(
        "no memory requested, at least one of '{path}.domain.memory.guest', '{path}.domain.memory.hugepages.size' or \
         '{path}.domain.resources.requests.memory' must be set"
    );
    causes.required("", message);
}

pub(super) fn cpu(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let resources = &spec.domain.resources;
    let milli = |amount: Option<&Amount>| amount.map_or(0, |it| it.0.milli_value());
    let (request, limit) = (resources.requests.get("cpu"), resources.limits.get("cpu"));
    let (request_path, limit_path) = (
        format!("{path}.domain.resources.requests.cpu"),
        format!("{path}.domain.resources.limits.cpu"),
    );
    if milli(request) < 0 {
        not_negative(&request_path, &text(request), causes);
    }
    if milli(limit) < 0 {
        not_negative(&limit_path, &text(limit), causes);
    }
    if milli(limit) > 0 && milli(request) > milli(limit) {
        let message = format!(
            "{request_path} '{}' is greater than {limit_path} '{}'",
            text(request),
            text(limit)
        );
        causes.invalid(&request_path, message);
    }
}
