//! The conductor: whenever something has changed, builds what is to be served, hands it to the data plane, and tells what
//! became of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::{Clients, Reach, Shutdown, WorkspaceId};
use fairway_gateway_routes as routes;
use fairway_gateway_routes::Memo;
use fairway_gateway_routes::build::Holders;
use fairway_gateway_routes::observed::Observed;
use fairway_gateway_routes::settings::{Addresses, Router};
use fairway_gateway_routes::table::{Certificate, RuleKey, Table};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::addresses::Pool;
use crate::bindings::{self, Bindings};
use crate::certificates::{self, Issuer, OfRouter};
use crate::claims::{self, Claims};
use crate::classes;
use crate::keeper::Wanted;
use crate::names::{self, Names, Owners};
use crate::pace::Pace;
use crate::plane::DataPlane;
use crate::policies::decide::{self, Decision, Way};
use crate::policies::prober::{self, Round};
use crate::policies::{Enforcer, Held, objects};
use crate::services;
use crate::settings::Settings;
use crate::statuses::Told;
use crate::world::World;

/// How soon to try again what the host refused, such as a port that somebody else has.
const RETRY: Duration = Duration::from_secs(5);
/// How often is looked what time alone has changed: certificates, key servers that answer again.
const TICK: Duration = Duration::from_secs(60);
/// How soon keys count while the next build is waited for.
const KEYS: Duration = Duration::from_millis(50);
/// A port that needs a privilege leads to another one, which may be taken.
const ROUNDS: usize = 3;

pub(crate) struct Conductor {
    world: Arc<World>,
    plane: Arc<dyn DataPlane>,
    issuer: Arc<dyn Issuer>,
    of_router: OfRouter,
    settings: Settings,
    pool: Option<Pool>,
    held: Arc<Held>,
    enforcer: Enforcer,
    told: Outlets,
    bindings: Bindings,
    /// Who remembers over a restart whose names are; nobody, where there is one workspace.
    memory: Option<Clients>,
    /// Whose the names at the doors are.
    holders: Arc<Holders>,
    /// Whose the published names are.
    owners: Arc<Owners>,
    /// What the data plane serves.
    served: Arc<Table>,
    /// What was made of routes.
    memo: Memo,
    pace: Pace,
}

/// Who carries on what the conductor has found.
pub(crate) struct Outlets {
    pub(crate) statuses: watch::Sender<Told>,
    pub(crate) rounds: watch::Sender<prober::Latest>,
    pub(crate) wanted: watch::Sender<Wanted>,
    pub(crate) certificates: watch::Sender<certificates::Wanted>,
    pub(crate) names: watch::Sender<Arc<Names>>,
    pub(crate) claims: watch::Sender<claims::Latest>,
}

impl Conductor {
    pub(crate) fn new(
        world: Arc<World>,
        (plane, issuer): (Arc<dyn DataPlane>, Arc<dyn Issuer>),
        settings: Settings,
        pool: Option<Pool>,
        (held, enforcer): (Arc<Held>, Enforcer),
        (told, memory): (Outlets, Option<Clients>),
    ) -> Self {
        Self {
            world,
            plane,
            issuer,
            of_router: OfRouter::default(),
            settings,
            pool,
            held,
            enforcer,
            told,
            bindings: Bindings::new(),
            memory,
            holders: Arc::default(),
            owners: Arc::default(),
            served: Arc::default(),
            memo: Memo::default(),
            pace: Pace::default(),
        }
    }

    /// Conducts until the end.
    pub(crate) async fn run(mut self, mut shutdown: Shutdown) {
        let mut retry: Option<Instant> = None;
        if let Some(clients) = &self.memory {
            tokio::select! {
                () = shutdown.wait() => return,
                remembered = claims::remember(clients) => {
                    (self.holders, self.owners) = (Arc::new(remembered.holders), Arc::new(remembered.owners));
                }
            }
        }
        loop {
            let later = async {
                match retry {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => tokio::time::sleep(TICK).await,
                }
            };
            tokio::select! {
                biased;
                () = shutdown.wait() => return,
                () = self.world.changed.notified() => {}
                () = later => {
                    bindings::retry(&mut self.bindings);
                }
            }
            tokio::select! {
                () = shutdown.wait() => return,
                () = self.rest() => {}
            }
            if !self.world.is_synced() || !self.held.is_synced() {
                continue;
            }
            let all_open = self.conduct().await;
            retry = (!all_open).then(|| {
                retry
                    .filter(|at| *at > Instant::now())
                    .unwrap_or(Instant::now() + RETRY)
            });
        }
    }

    /// Until it is time for the next build. Keys that come or go do not wait for it.
    async fn rest(&self) {
        let due = self.pace.due(Instant::now());
        while Instant::now() + KEYS < due {
            self.enforcer.take_secrets(&self.held);
            tokio::time::sleep(KEYS).await;
        }
        tokio::time::sleep_until(due).await;
    }

    /// One change. `false`: the host refused something, which may be otherwise later.
    async fn conduct(&mut self) -> bool {
        let addresses = match &mut self.pool {
            None => Addresses::Shared(self.settings.address),
            Some(pool) => {
                let gateways = self.world.seen().gateways();
                Addresses::Each(pool.assign(gateways).await)
            }
        };
        let begun = Instant::now();
        // Whatever comes meanwhile is for the next build; watches must not wait for this one.
        let observed = Arc::new(self.world.seen().observed.clone());
        let generations = prober::generations(&self.held.seen());
        self.enforcer.take_secrets(&self.held);
        let has_routes = (observed.workspaces.values()).any(|held| !held.routes.is_empty());
        let certificate = match has_routes {
            true => self.of_router.get(&*self.issuer, &self.settings.domain),
            false => None,
        };
        let mut built = routes::Built::default();
        let mut decision = Decision::default();
        let mut ways = BTreeMap::new();
        // The same for each round: in the first after a start it is not known yet which port stands in for which.
        let mut holders = Arc::clone(&self.holders);
        for _ in 0..ROUNDS {
            let settings = self.route_settings(addresses.clone(), certificate.clone());
            let memo = std::mem::take(&mut self.memo);
            let Some(found) = build(&observed, settings, &self.held, memo).await else {
                return true;
            };
            (built, ways, decision) = (found.built, found.ways, found.decision);
            self.memo = found.memo;
            holders = Arc::new(std::mem::take(&mut built.holders));
            let table = Arc::new(std::mem::take(&mut built.table));
            let guards_changed = self.enforcer.take(&mut decision);
            if *table == *self.served && !guards_changed {
                break;
            }
            let doors: BTreeSet<SocketAddr> = table.doors.keys().copied().collect();
            let answer = self.plane.serve(Arc::clone(&table), self.enforcer.guards()).await;
            let found = bindings::after(&self.bindings, &built.wanted, &doors, &answer);
            self.served = table;
            if found == self.bindings {
                break;
            }
            self.bindings = found;
        }
        self.holders = holders;
        let mut objects = objects::decide(&self.held.seen(), &observed, &built.statuses, &self.settings);
        let wanted = {
            let seen = self.world.seen();
            let services = services::wanted(&seen, &built.statuses, &self.bindings, &self.settings);
            Wanted {
                classes: classes::missing(&seen.observed),
                services: Arc::new(services),
                limits: Arc::new(std::mem::take(&mut objects.limits)),
            }
        };
        // Nobody listens any more at the end only.
        let _ = self.told.statuses.send(Arc::new(built.statuses));
        let _ = self.told.wanted.send(wanted);
        let certificates = certificates::by_secret(std::mem::take(&mut objects.certificates));
        self.told.certificates.send_if_modified(|before| {
            let changed = **before != certificates;
            *before = Arc::new(certificates);
            changed
        });
        let (published, owners) = names::published(
            (&self.served, &observed),
            &objects.records,
            &self.settings,
            &self.operator(),
            &self.owners,
        );
        self.owners = Arc::new(owners);
        for named in &objects.named {
            let conditions = named.conditions(&published);
            objects.conditions.insert(named.key(), conditions);
        }
        let _ = self.told.claims.send(Some(Claims {
            holders: Arc::clone(&self.holders),
            owners: Arc::clone(&self.owners),
            bindings: self.bindings.clone(),
        }));
        self.told.names.send_if_modified(|before| {
            let changed = **before != published;
            *before = Arc::new(published);
            changed
        });
        // Routes must not wait for probes, which may lead to servers of tenants.
        let round = Round {
            decision,
            ways,
            guards: self.enforcer.kept(),
            conditions: objects.conditions,
            generations,
        };
        let _ = self.told.rounds.send(Some(Arc::new(round)));
        self.pace.built(begun.elapsed(), Instant::now());
        !(self.bindings.values()).any(|it| matches!(it, routes::settings::Binding::Failed(_)))
    }

    /// The workspace of whoever runs the platform.
    fn operator(&self) -> String {
        let workspace = match &self.world.reach {
            Reach::Every => WorkspaceId::root_ref(),
            Reach::One(only) => only,
        };
        workspace.as_str().to_owned()
    }

    fn route_settings(
        &self,
        addresses: Addresses,
        certificate: Option<Arc<Certificate>>,
    ) -> routes::Settings {
        routes::Settings {
            controllers: classes::CONTROLLERS.iter().map(|&name| name.to_owned()).collect(),
            classes: classes::known(),
            addresses,
            operator: self.operator(),
            bindings: self.bindings.clone(),
            holders: Arc::clone(&self.holders),
            router: Router {
                name: "default".to_owned(),
                address: self.settings.address,
                http: self.settings.http,
                https: self.settings.https,
                domain: self.settings.domain.clone(),
                certificate,
                wildcards: false,
            },
        }
    }
}

/// What a build came to.
struct Found {
    built: routes::Built,
    /// None where there are no policies: nobody else asks.
    ways: BTreeMap<RuleKey, Way>,
    decision: Decision,
    memo: Memo,
}

/// Away from those who wait for something: with thousands of routes it takes a while. None: everything is about to end.
async fn build(
    observed: &Arc<Observed>,
    settings: routes::Settings,
    held: &Arc<Held>,
    mut memo: Memo,
) -> Option<Found> {
    let (observed, held) = (Arc::clone(observed), Arc::clone(held));
    let building = tokio::task::spawn_blocking(move || {
        let built = routes::build_with(&observed, &settings, &mut memo);
        let held = held.seen();
        let policies: Vec<_> = held.policies.values().map(|one| &one.policy).collect();
        let (mut ways, mut decision) = (BTreeMap::new(), Decision::default());
        if !policies.is_empty() {
            ways = decide::ways(&built.table);
            decision = decide::decide(&policies, &observed, &ways);
        }
        Found {
            built,
            ways,
            decision,
            memo,
        }
    });
    match building.await {
        Ok(found) => Some(found),
        // As if it had been built here.
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => None,
    }
}
