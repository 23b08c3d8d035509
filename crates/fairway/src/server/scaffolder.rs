//! Software templates, wired to the kernel, the Git host, and the mail servers that notifications are configured with.

mod renders;

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_api::argoproj::CONTROL_PLANES;
use fairway_controller::clients::Within;
use fairway_controller::{
    ClientFactory, Clients, Metrics, ObjectKey, Reach, Requests, Shutdown, WorkspaceId,
};
use fairway_gitops_githost::access::{Caller, Verb};
use fairway_gitops_githost::route::Slug;
use fairway_gitops_githost::{Host, owner};
use fairway_gitops_notifications::Config as Notifications;
use fairway_gitops_notifications::config::Service;
use fairway_gitops_notifications::message::{Mail as Letter, Message};
use fairway_kernel_apiserver::Kernel;
use fairway_kernel_apiserver::authn::UserInfo;
use fairway_kernel_apiserver::client::InProcess;
use fairway_machines_engine::{Foreseen, Foresight};
use fairway_outbound::{AllowedHosts, Outbound};
use fairway_portal_scaffolder::ports::{ForgeError, Hosted};
use fairway_portal_scaffolder::{
    Actors, Apis, Builtin, Forge, Gateways as _, Mail, Mailer, Options, Person, Place, Places, Scaffolder,
    builtin,
};
use fairway_portal_template::files::{File, Files};
use futures::future::BoxFuture;
use http::Method;
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::Value;

use super::gateway::Doors;
use super::web::{Portal, Visitor};

/// Templates that are part of the program, each with its files.
macro_rules! golden_path {
    ($name:literal, [$($file:literal),* $(,)?]) => {
        Builtin::new($name, &[$(($file, &include_bytes!(concat!("../../../../examples/golden-paths/", $name, "/", $file))[..])),*])
    };
}

/// All of them, with host names below the domain of gateways.
pub(crate) fn builtins(domain: &str) -> Arc<[Builtin]> {
    let machine = golden_path!(
        "virtual-machine",
        [
            "template.yaml",
            "skeleton/README.md",
            "skeleton/catalog-info.yaml",
            "skeleton/manifests/cloud-init.yaml",
            "skeleton/manifests/namespace.yaml",
            "skeleton/manifests/service.yaml",
            "skeleton/manifests/ssh.yaml",
            "skeleton/manifests/virtual-machine.yaml",
            "connectivity/apiproduct.yaml",
            "connectivity/authpolicy.yaml",
            "connectivity/gateway.yaml",
            "connectivity/httproute.yaml",
            "connectivity/planpolicy.yaml",
            "connectivity/ratelimitpolicy.yaml",
            "connectivity/route.yaml",
        ]
    );
    Arc::new([machine.below(domain)])
}

/// Clients in process that are exactly the person who started a run.
struct InSomebodysName(Arc<Kernel>);

impl Actors for InSomebodysName {
    fn client(&self, workspace: &WorkspaceId, person: &Person) -> Client {
        let user = UserInfo {
            name: person.username.clone(),
            uid: person.uid.clone(),
            groups: person.groups.clone(),
            extra: person.extra.clone(),
        };
        let service = InProcess::new(Arc::clone(&self.0), user);
        Client::new(Within::new(service, &Reach::One(workspace.clone())), "default")
    }

    fn workspace(&self, path: &str) -> Option<WorkspaceId> {
        let id = self.0.workspaces.resolve(path)?;
        WorkspaceId::parse(&id).ok()
    }
}

/// The Git host of this process.
struct OwnForge {
    host: Arc<Host>,
    clients: Clients,
}

fn caller(person: &Person) -> Caller {
    let user = k8s_openapi::api::authentication::v1::UserInfo {
        username: Some(person.username.clone()),
        uid: Some(person.uid.clone()).filter(|uid| !uid.is_empty()),
        groups: Some(person.groups.clone()),
        extra: Some(person.extra.clone()).filter(|extra| !extra.is_empty()),
    };
    Caller { user: Some(user) }
}

impl OwnForge {
    /// A person is known in the workspace of the run, so that only its repositories are reached.
    async fn check(&self, workspace: &WorkspaceId, asked: &str) -> Result<(), ForgeError> {
        let own = self.owner_of(workspace).await?;
        match own == asked {
            true => Ok(()),
            false => Err(ForgeError {
                code: 404,
                message: format!("repositories of {asked:?} belong to another workspace than {own:?}"),
            }),
        }
    }

    async fn owner_of(&self, workspace: &WorkspaceId) -> Result<String, ForgeError> {
        if workspace.is_root() {
            return Ok("root".to_owned());
        }
        let itself = Requests::new(self.clients.of(workspace));
        let found = itself
            .get("/apis/core.kcp.io/v1alpha1/logicalclusters/cluster")
            .await;
        let found = found.map_err(|failure| ForgeError {
            code: 500,
            message: failure.sentence(),
        })?;
        let path = found.and_then(|found| {
            Some(
                found["metadata"]["annotations"]["kcp.io/path"]
                    .as_str()?
                    .to_owned(),
            )
        });
        path.map(|path| owner::of_workspace(&path))
            .ok_or_else(|| ForgeError {
                code: 404,
                message: format!("the path of workspace {workspace} is not known"),
            })
    }
}

impl Forge for OwnForge {
    fn url(&self) -> String {
        self.host.url().to_owned()
    }

    fn owner<'a>(&'a self, workspace: &'a WorkspaceId) -> BoxFuture<'a, Result<String, ForgeError>> {
        Box::pin(self.owner_of(workspace))
    }

    fn call<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        person: &'a Person,
        method: Method,
        path: &'a str,
        body: Value,
    ) -> BoxFuture<'a, Result<Value, ForgeError>> {
        Box::pin(async move {
            let asked = path.split('/').nth(1).unwrap_or("");
            self.check(workspace, asked).await?;
            let answer = self.host.call_as(caller(person), method, path, &body).await;
            answer.map_err(|(code, message)| ForgeError { code, message })
        })
    }

    fn read<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        person: &'a Person,
        repository: &'a Hosted,
        revision: &'a str,
        directory: &'a str,
    ) -> BoxFuture<'a, Result<(String, Files), ForgeError>> {
        Box::pin(async move {
            self.check(workspace, &repository.owner).await?;
            let slug = Slug {
                owner: repository.owner.clone(),
                name: repository.name.clone(),
            };
            let opened = self.host.open_for(&slug, caller(person), Verb::Get).await;
            let opened = opened.map_err(|denial| ForgeError {
                code: 404,
                message: format!("it does not exist, or you may not read it ({denial:?})"),
            })?;
            let failed = |error: fairway_gitops_git::GitError| ForgeError {
                code: 400,
                message: error.full(),
            };
            let revision = match revision {
                "" => opened.wanted.default_branch.as_str(),
                named => named,
            };
            let commit = opened.repository.resolve(revision).await.map_err(failed)?;
            let files = files(&opened.repository, &commit, directory).await?;
            Ok((commit.as_str().to_owned(), files))
        })
    }
}

/// The files below a directory of a commit, or the one file that it is. Links and submodules are left out.
async fn files(
    repository: &fairway_gitops_git::Repository,
    commit: &fairway_gitops_git::ObjectId,
    directory: &str,
) -> Result<Files, ForgeError> {
    let wrong = |message: String| ForgeError { code: 400, message };
    let directory =
        fairway_portal_template::files::clean(directory).map_err(|error| wrong(error.to_string()))?;
    let mut command =
        repository
            .command("ls-tree")
            .args(["-r", "-z", "--long", "--full-tree", commit.as_str()]);
    if !directory.is_empty() {
        command = command.arg("--").arg(&directory);
    }
    let printed = command.output().await.map_err(|error| wrong(error.full()))?;
    let mut found = Files::default();
    for line in printed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let text = String::from_utf8_lossy(line);
        let Some((head, path)) = text.split_once('\t') else {
            continue;
        };
        let words: Vec<&str> = head.split_whitespace().collect();
        let [mode, "blob", id, _] = words[..] else {
            continue;
        };
        if mode == "120000" {
            continue;
        }
        let Ok(id) = fairway_gitops_git::ObjectId::parse(id) else {
            continue;
        };
        let limit = fairway_portal_template::files::MAX_FILE as u64;
        let content = repository
            .object(&id, "blob", limit)
            .await
            .map_err(|error| wrong(error.full()))?;
        let inside = match path.strip_prefix(&format!("{directory}/")) {
            Some(inside) => inside,
            None if path == directory => path.rsplit('/').next().unwrap_or(path),
            None => path,
        };
        let file = File {
            content: content.into(),
            is_executable: mode == "100755",
        };
        found
            .write(inside, file)
            .map_err(|error| wrong(error.to_string()))?;
    }
    Ok(found)
}

/// Mail through the service `email` of `argocd-notifications-cm`, as notifications of the same workspace go.
struct Postman {
    clients: Clients,
    outbound: Arc<Outbound>,
}

impl Postman {
    async fn server(&self, workspace: &WorkspaceId) -> Result<Option<Service>, String> {
        let requests = Requests::new(self.clients.of(workspace));
        for plane in CONTROL_PLANES.iter().rev() {
            let place = format!("/api/v1/namespaces/{plane}");
            let map = requests
                .get(&format!("{place}/configmaps/argocd-notifications-cm"))
                .await;
            let Some(map) = map.map_err(|failure| failure.sentence())? else {
                continue;
            };
            let secret = requests
                .get(&format!("{place}/secrets/argocd-notifications-secret"))
                .await;
            let secret = secret.map_err(|failure| failure.sentence())?.unwrap_or_default();
            let texts = |object: &Value| -> BTreeMap<String, String> {
                let data = object["data"].as_object().into_iter().flatten();
                data.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())))
                    .collect()
            };
            let secrets = texts(&secret)
                .into_iter()
                .filter_map(|(name, text)| Some((name, String::from_utf8(STANDARD.decode(text).ok()?).ok()?)))
                .collect();
            let config = Notifications::read(&texts(&map), &secrets);
            let email = config
                .services
                .into_values()
                .find(|service| matches!(service, Service::Email(_)));
            if email.is_some() {
                return Ok(email);
            }
        }
        Ok(None)
    }
}

impl Mailer for Postman {
    fn send<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        mail: &'a Mail,
    ) -> BoxFuture<'a, Result<(), (String, bool)>> {
        Box::pin(async move {
            let server = self.server(workspace).await.map_err(|why| (why, true))?;
            // Somebody may configure it tomorrow; until then it waits.
            let server = server.ok_or_else(|| {
                let why = "no mail server is configured: service.email of argocd-notifications-cm in openshift-gitops";
                (why.to_owned(), true)
            })?;
            let letter = Message::Mail(Letter {
                to: mail.to.clone(),
                subject: mail.subject.clone(),
                body: mail.body.clone(),
            });
            let sent = fairway_gitops_notifier::send::send(&self.outbound, &server, &letter).await;
            sent.map_err(|why| (why, true))
        })
    }
}

/// What the portal serves, asked from within: the person is known, so that no token is needed.
struct OwnApis(Visitor);

impl Apis for OwnApis {
    fn ask<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        person: &'a Person,
        request: http::Request<Vec<u8>>,
        most: usize,
    ) -> BoxFuture<'a, Result<http::Response<Vec<u8>>, String>> {
        Box::pin(async move {
            let portal = self
                .0
                .portal()
                .ok_or_else(|| "the portal is not served any more".to_owned())?;
            let mut request =
                request.map(|body| fairway_gitops_githost::transport::full(bytes::Bytes::from(body)));
            let name =
                http::HeaderValue::from_str(&workspace.to_string()).map_err(|error| error.to_string())?;
            request
                .headers_mut()
                .insert(fairway_portal_catalog::WORKSPACE_HEADER, name);
            request.extensions_mut().insert(fairway_apiservice::User {
                name: person.username.clone(),
                uid: person.uid.clone(),
                groups: person.groups.clone(),
                extra: person.extra.clone(),
            });
            let (parts, mut body) = portal.serve(request).await.into_parts();
            let mut whole = Vec::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| format!("the answer broke off: {error}"))?;
                // What is no data are trailers, of which nobody wants to know.
                let data = frame.into_data().unwrap_or_default();
                if whole.len() + data.len() > most {
                    return Err(format!("the answer has more than {most} bytes"));
                }
                whole.extend_from_slice(&data);
            }
            Ok(http::Response::from_parts(parts, whole))
        })
    }
}

/// The scheduler of machines.
struct OwnPlaces(Foresight);

impl Places for OwnPlaces {
    fn foresee<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        asker: &'a Requests,
        objects: &'a [Value],
    ) -> BoxFuture<'a, Vec<Place>> {
        Box::pin(async move {
            let found = self.0.places(workspace, asker, objects).await;
            found
                .into_iter()
                .map(|(key, foreseen)| place(key, foreseen))
                .collect()
        })
    }
}

fn place(key: ObjectKey, foreseen: Foreseen) -> Place {
    let (scheduled, node) = match foreseen {
        Foreseen::Node(node) => (Some(true), node),
        Foreseen::None(why) => (Some(false), format!("none: {why}")),
        Foreseen::NoNodes => (Some(false), "no node runs machines here".to_owned()),
        Foreseen::Unknown(why) => (None, format!("not known: {why}")),
    };
    Place {
        namespace: key.namespace,
        name: key.name,
        scheduled,
        node,
    }
}

/// What the scaffolder learns of machines and gateways.
pub(super) struct Neighbours {
    pub(super) foresight: Foresight,
    pub(super) doors: Doors,
}

/// What runs templates; nothing happens yet.
pub(super) fn make(
    kernel: &Arc<Kernel>,
    clients: &ClientFactory,
    host: &Arc<Host>,
    (url, portal): (&str, &Portal),
    allowed_hosts: &AllowedHosts,
    neighbours: Neighbours,
) -> Scaffolder {
    let outbound = Arc::new(Outbound::new(allowed_hosts.clone()));
    let own = clients.clients(fairway_portal_scaffolder::USER);
    Scaffolder::new(Options {
        clients: clients.clone(),
        actors: Arc::new(InSomebodysName(Arc::clone(kernel))),
        forge: Arc::new(OwnForge {
            host: Arc::clone(host),
            clients: own,
        }),
        apis: Arc::new(OwnApis(portal.visitor())),
        mailer: Arc::new(Postman {
            clients: clients.clients(fairway_gitops_notifier::USER),
            outbound: Arc::clone(&outbound),
        }),
        outbound,
        builtins: builtins(neighbours.doors.domain()),
        places: Arc::new(OwnPlaces(neighbours.foresight)),
        renderer: Arc::new(renders::OwnRenderer),
        gateways: Arc::new(neighbours.doors),
        portal: url.to_owned(),
    })
}

/// Has Backstage's API answered by the portal.
pub(super) fn join(scaffolder: &Scaffolder, portal: &Portal) {
    let rest = scaffolder.rest();
    portal.join(
        "/api/scaffolder",
        Arc::new(move |request| {
            let rest = rest.clone();
            Box::pin(async move { rest.serve(request).await })
        }),
    );
}

/// Registers what is part of the program, and runs Voyages until the end.
pub(super) async fn run(
    scaffolder: Arc<Scaffolder>,
    clients: ClientFactory,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
) {
    let running = scaffolder.run(metrics, shutdown);
    let templates = scaffolder.builtins();
    tokio::join!(running, builtin::register(&clients, &templates));
}
