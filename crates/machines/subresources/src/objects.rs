//! Objects as they are read and written here, in one workspace.

use fairway_api::Kind;
use fairway_api::kubevirt::{
    HYPER_CONVERGED, KUBE_VIRT, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION,
};
use fairway_controller::error::{is_conflict, is_not_found, sentence, status};
use fairway_machines_plan::settings::Sources;
use http::Request;
use kube::{Client, Error};
use serde_json::Value;

use crate::decide::{Step, Verdict};
use crate::refusal::{About, Refusal};

/// In whose name fields are written: upstream's.
const MANAGER: &str = "virt-api";
/// What a JSON patch that was overtaken is refused with.
const TEST_FAILED: &str = "test failed";

/// The objects of a machine.
pub(crate) struct Objects {
    client: Client,
    namespace: String,
    name: String,
}

/// How often is decided anew because somebody else was quicker.
const ATTEMPTS: usize = 5;

/// Why something was not written.
enum WriteError {
    /// Somebody else was quicker: it is to be decided anew.
    Overtaken(String),
    /// It is refused.
    Refused(Refusal),
}

impl Objects {
    pub(crate) fn new(client: Client, namespace: &str, name: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    fn path(&self, kind: Kind) -> String {
        format!("{}/{}", collection(kind, &self.namespace), self.name)
    }

    async fn read(&self, path: &str) -> Result<Option<Value>, Error> {
        let request = Request::get(path).body(Vec::new()).map_err(Error::HttpError)?;
        match self.client.request(request).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The machine.
    pub(crate) async fn machine(&self) -> Result<Value, Refusal> {
        match self.read(&self.path(VIRTUAL_MACHINE)).await {
            Ok(found) => found.ok_or_else(|| Refusal::not_found(About::Machine, &self.name)),
            Err(error) => {
                let why = format!("unable to retrieve vm [{}]: {}", self.name, sentence(&error));
                Err(Refusal::internal(&why))
            }
        }
    }

    /// Its instance, if there is one.
    pub(crate) async fn instance_if_there(&self) -> Result<Option<Value>, Refusal> {
        self.read(&self.path(VIRTUAL_MACHINE_INSTANCE))
            .await
            .map_err(|error| {
                let why = format!("unable to retrieve vmi [{}]: {}", self.name, sentence(&error));
                Refusal::internal(&why)
            })
    }

    /// Its instance.
    pub(crate) async fn instance(&self) -> Result<Value, Refusal> {
        let found = self.instance_if_there().await?;
        found.ok_or_else(|| Refusal::not_found(About::Instance, &self.name))
    }

    /// The instance that belongs to the machine.
    pub(crate) async fn instance_of_machine(&self) -> Result<Value, Refusal> {
        let vm = self.machine().await?;
        if vm["status"]["created"] != true {
            return Err(Refusal::conflict(
                About::Machine,
                &self.name,
                "VMI is not started",
            ));
        }
        let vmi = self.instance().await?;
        let owners = vmi["metadata"]["ownerReferences"].as_array();
        let is_owned = owners
            .into_iter()
            .flatten()
            .any(|it| it["uid"] == vm["metadata"]["uid"]);
        match is_owned {
            true => Ok(vmi),
            false => Err(Refusal::internal(&format!(
                "unable to retrieve vmi [{0}] for vm: the instance {0} does not belong to it",
                self.name
            ))),
        }
    }

    /// Any other object of the workspace.
    pub(crate) async fn other(&self, path: &str) -> Result<Option<Value>, Refusal> {
        let found = self.read(path).await;
        found.map_err(|error| Refusal::internal(&format!("unable to read {path}: {}", sentence(&error))))
    }

    /// What the settings of machines in this workspace come from.
    pub(crate) async fn settings(&self) -> Result<Sources, Refusal> {
        let mut all = Vec::new();
        for kind in [KUBE_VIRT, HYPER_CONVERGED] {
            let path = format!("/apis/{}/{}/{}", kind.group, kind.version, kind.plural);
            let mut list = self.other(&path).await?.unwrap_or_default();
            all.push(match list["items"].take() {
                Value::Array(items) => items,
                _ => Vec::new(),
            });
        }
        let operators = all.pop().unwrap_or_default();
        Ok(Sources::of(all.pop().unwrap_or_default(), operators))
    }

    /// Decides on objects as they are, and writes; again if they have changed meanwhile.
    pub(crate) async fn change<F: Future<Output = Verdict>>(
        &self,
        about: About,
        dry_run: Option<&[String]>,
        decide: impl Fn() -> F,
    ) -> Result<(), Refusal> {
        let mut said = String::new();
        'again: for _ in 0..ATTEMPTS {
            for step in decide().await? {
                match self.write(&step, dry_run.unwrap_or_default()).await {
                    Ok(()) => {}
                    Err(WriteError::Overtaken(why)) => {
                        said = why;
                        continue 'again;
                    }
                    Err(WriteError::Refused(refusal)) => return Err(refusal),
                }
            }
            return Ok(());
        }
        Err(Refusal::conflict(about, &self.name, &said))
    }

    /// Writes one step.
    async fn write(&self, step: &Step, dry_run: &[String]) -> Result<(), WriteError> {
        const MERGE: &str = "application/merge-patch+json";
        const JSON: &str = "application/json-patch+json";
        let (machine, instance) = (self.path(VIRTUAL_MACHINE), self.path(VIRTUAL_MACHINE_INSTANCE));
        let (method, path, content, body) = match step {
            Step::MergeMachine(patch) => ("PATCH", machine, MERGE, patch),
            Step::PatchMachineStatus(steps) => ("PATCH", format!("{machine}/status"), JSON, steps),
            Step::MergeInstance(patch) => ("PATCH", instance, MERGE, patch),
            Step::PatchInstance(steps) => ("PATCH", instance, JSON, steps),
            Step::CreateMigration(object) => {
                let path = collection(VIRTUAL_MACHINE_INSTANCE_MIGRATION, &self.namespace);
                ("POST", path, "application/json", object)
            }
        };
        let mut query = format!("{path}?fieldManager={MANAGER}");
        for directive in dry_run {
            query.push_str("&dryRun=");
            query.extend(directive.bytes().map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte),
                // No directive has any other; one that does is refused as what it is not.
                _ => '_',
            }));
        }
        let request = Request::builder()
            .method(method)
            .uri(query)
            .header("content-type", content)
            .body(body.to_string().into_bytes());
        let request = request.map_err(|error| {
            WriteError::Refused(Refusal::internal(&format!("the request cannot be made: {error}")))
        })?;
        match self.client.request::<Value>(request).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.refused(step, &error)),
        }
    }

    fn refused(&self, step: &Step, error: &Error) -> WriteError {
        let about = match step {
            Step::MergeMachine(_) | Step::PatchMachineStatus(_) => About::Machine,
            Step::MergeInstance(_) | Step::PatchInstance(_) | Step::CreateMigration(_) => About::Instance,
        };
        let said = sentence(error);
        WriteError::Refused(match status(error) {
            Some(it) if is_conflict(error) || (it.code == 422 && said.contains(TEST_FAILED)) => {
                return WriteError::Overtaken(said);
            }
            Some(it) if it.code == 404 => Refusal::not_found(about, &self.name),
            // What the API has against it is for whoever asked to know: quotas, policies, what the object may not say.
            Some(it) if (400..500).contains(&it.code) => Refusal {
                code: it.code,
                reason: it.reason.clone(),
                message: it.message.clone(),
                details: serde_json::to_value(&it.details).unwrap_or_default(),
                is_text: false,
            },
            _ => Refusal::internal(&said),
        })
    }
}

/// All objects of a kind in a namespace.
fn collection(kind: Kind, namespace: &str) -> String {
    format!(
        "/apis/{}/{}/namespaces/{namespace}/{}",
        kind.group, kind.version, kind.plural
    )
}
