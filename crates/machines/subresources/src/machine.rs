//! What is asked of a VirtualMachine.

use fairway_apiservice::Body;
use fairway_controller::WorkspaceId;
use fairway_machines_plan::expand;
use fairway_machines_plan::settings::Settings;
use fairway_machines_plan::view::{self, VirtualMachine};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::decide::{self, Verdict, VolumeChange};
use crate::objects::Objects;
use crate::options::{self, Plain, Restart, Start, Stop};
use crate::refusal::{About, Refusal};
use crate::service::{Asked, Hands};
use crate::{answer, size};

impl Hands {
    pub(crate) async fn machine(&self, asked: &Asked, body: &[u8]) -> Result<Response<Body>, Refusal> {
        let objects = &asked.objects;
        match asked.info.subresource.as_str() {
            "start" => {
                let options: Start = options::read(body)?;
                let dry = options.dry_run.as_deref();
                change(asked, dry, |vm, vmi| decide::start(vm, vmi, &options)).await
            }
            "stop" => {
                let options: Stop = options::read(body)?;
                let dry = options.dry_run.as_deref();
                change(asked, dry, |vm, vmi| decide::stop(vm, vmi, &options)).await
            }
            "restart" => {
                let options: Restart = options::read(body)?;
                let dry = options.dry_run.as_deref();
                change(asked, dry, |vm, vmi| decide::restart(vm, vmi, &options)).await
            }
            "migrate" => {
                let options: Plain = options::read(body)?;
                change(asked, options.dry_run.as_deref(), decide::migrate).await
            }
            "addvolume" => {
                let wanted = VolumeChange::add(options::value(body)?)?;
                let dry = wanted.dry_run();
                change(asked, dry.as_deref(), |vm, _| decide::machine_volume(vm, &wanted)).await
            }
            "removevolume" => {
                let wanted = VolumeChange::remove(options::value(body)?)?;
                let dry = wanted.dry_run();
                change(asked, dry.as_deref(), |vm, _| decide::machine_volume(vm, &wanted)).await
            }
            "expand-spec" => {
                let vm = objects.machine().await?;
                let expanded = self.expand(&asked.workspace, objects, &vm).await?;
                Ok(answer::json(StatusCode::OK, &expanded))
            }
            "memorydump" | "removememorydump" => Err(Refusal::bad_request(
                "memory dumps are not supported by Fairway: take a VirtualMachineSnapshot, which keeps the memory of a \
                 running machine, too",
            )),
            other => Err(Refusal::bad_request(format!("{other} is not done with machines"))),
        }
    }

    /// A machine with its size and its taste written out.
    async fn expand(&self, workspace: &WorkspaceId, objects: &Objects, vm: &Value) -> Result<Value, Refusal> {
        let root = Objects::new(self.clients.root(), "", "");
        let platform = root.settings().await?;
        let settings = match workspace.is_root() {
            true => Settings::in_force(&platform, None),
            false => Settings::in_force(&platform, Some(&objects.settings().await?)),
        };
        let (size, taste) = size::of(objects, vm).await?;
        expand::machine(vm, size.as_ref(), taste.as_ref(), &settings)
            .map_err(|error| Refusal::internal(&error.to_string()))
    }

    /// The same for a machine that need not exist.
    pub(crate) async fn expand_given(&self, asked: &Asked, body: &[u8]) -> Result<Response<Body>, Refusal> {
        if body.is_empty() {
            return Err(Refusal::bad_request("empty request body"));
        }
        let mut vm: Value = serde_json::from_slice(body).map_err(|error| Refusal::malformed(&error))?;
        let invalid = |why: String| Refusal {
            details: json!({"causes": [{"message": why}]}),
            ..Refusal::bad_request("Object is not a valid VirtualMachine")
        };
        let kind = (&vm["apiVersion"], &vm["kind"]);
        if !vm.is_object() || kind != (&json!("kubevirt.io/v1"), &json!("VirtualMachine")) {
            let why = "apiVersion and kind must be kubevirt.io/v1 and VirtualMachine";
            return Err(invalid(why.to_owned()));
        }
        if let Err(error) = view::read::<VirtualMachine>("VirtualMachine", &vm) {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            return Err(invalid(cause.unwrap_or_else(|| error.to_string())));
        }
        let here = asked.info.namespace.as_deref().unwrap_or_default();
        match vm["metadata"]["namespace"].as_str() {
            Some(other) if !other.is_empty() && other != here => {
                return Err(Refusal::bad_request(format!(
                    "VM namespace must be empty or {here}"
                )));
            }
            _ => vm["metadata"]["namespace"] = here.into(),
        }
        let expanded = self.expand(&asked.workspace, &asked.objects, &vm).await;
        // Whoever sent it is at fault here, not the server.
        let expanded =
            expanded.map_err(|refusal| match refusal.details["causes"][0]["message"].as_str() {
                Some(why) => Refusal::bad_request(why),
                None => refusal,
            })?;
        Ok(answer::json(StatusCode::OK, &expanded))
    }
}

/// Decides on the machine and its instance, and writes.
async fn change(
    asked: &Asked,
    dry_run: Option<&[String]>,
    decide: impl Fn(&Value, Option<&Value>) -> Verdict,
) -> Result<Response<Body>, Refusal> {
    let objects = &asked.objects;
    let decide = async || {
        let vm = objects.machine().await?;
        let vmi = objects.instance_if_there().await?;
        decide(&vm, vmi.as_ref())
    };
    objects.change(About::Machine, dry_run, decide).await?;
    Ok(answer::done(StatusCode::ACCEPTED))
}
