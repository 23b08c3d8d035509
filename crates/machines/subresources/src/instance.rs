//! What is asked of a VirtualMachineInstance that is not a stream.

use fairway_apiservice::Body;
use fairway_controller::ObjectKey;
use fairway_machines_guests::{self as guests, Order};
use http::{Response, StatusCode};
use serde_json::Value;

use crate::answer;
use crate::decide::{self, VolumeChange};
use crate::options::{self, Freeze, Plain};
use crate::refusal::{About, Refusal};
use crate::service::{Asked, Hands};

impl Hands {
    pub(crate) async fn instance(&self, asked: &Asked, body: &[u8]) -> Result<Response<Body>, Refusal> {
        let done = || answer::done(StatusCode::OK);
        match asked.info.subresource.as_str() {
            "pause" => {
                let options: Plain = options::read(body)?;
                self.tell(asked, decide::pause, Order::Pause, options.is_dry())
                    .await
                    .map(|()| done())
            }
            "unpause" => {
                let options: Plain = options::read(body)?;
                self.tell(asked, decide::unpause, Order::Unpause, options.is_dry())
                    .await
                    .map(|()| done())
            }
            "freeze" => {
                let options: Freeze = options::read(body)?;
                let seconds = options.unfreeze_timeout.as_deref().map(options::seconds);
                let order = Order::Freeze {
                    unfreeze_seconds: seconds.transpose()?.filter(|it| *it > 0),
                };
                self.tell(asked, decide::freeze, order, false)
                    .await
                    .map(|()| done())
            }
            "unfreeze" => self
                .tell(asked, decide::unfreeze, Order::Unfreeze, false)
                .await
                .map(|()| done()),
            "softreboot" => self
                .tell(asked, decide::soft_reboot, Order::SoftReboot, false)
                .await
                .map(|()| done()),
            "reset" => self.reset(asked).await.map(|()| done()),
            "guestosinfo" if asked.info.rest == "usage" => self.usage(asked, Order::Usage).await,
            "guestosinfo" if asked.info.rest == "usage/history" => {
                self.usage(asked, Order::UsageHistory).await
            }
            "guestosinfo" => self.ask(asked, Order::GuestOsInfo).await,
            "userlist" => self.ask(asked, Order::UserList).await,
            "filesystemlist" => self.ask(asked, Order::FilesystemList).await,
            "addvolume" => {
                self.volume(asked, &VolumeChange::add(options::value(body)?)?)
                    .await
            }
            "removevolume" => {
                self.volume(asked, &VolumeChange::remove(options::value(body)?)?)
                    .await
            }
            "sev" => Err(decide::sev()),
            other => Err(Refusal::bad_request(format!(
                "{other} is not done with instances"
            ))),
        }
    }

    /// Has something done to a machine that may be done.
    async fn tell(
        &self,
        asked: &Asked,
        allowed: impl Fn(&Value) -> Result<(), Refusal>,
        order: Order,
        is_dry: bool,
    ) -> Result<(), Refusal> {
        let vmi = asked.objects.instance().await?;
        allowed(&vmi)?;
        let node = decide::reachable(&vmi)?;
        if is_dry {
            return Ok(());
        }
        self.order(asked, node, order).await.map(drop)
    }

    async fn reset(&self, asked: &Asked) -> Result<(), Refusal> {
        let vmi = asked.objects.instance().await?;
        let told = match decide::reachable(&vmi) {
            Ok(node) => self.order(asked, node, Order::Reset).await.map(drop),
            Err(refusal) => Err(refusal),
        };
        told.map_err(|refusal| decide::reset_context(&vmi, refusal))
    }

    /// Asks the guest about itself.
    pub(crate) async fn ask(&self, asked: &Asked, order: Order) -> Result<Response<Body>, Refusal> {
        let failed = Refusal::into_failure;
        let vmi = asked.objects.instance().await.map_err(failed)?;
        decide::guest_data(&vmi)?;
        let node = decide::reachable(&vmi).map_err(failed)?;
        let told = self.order(asked, node, order).await.map_err(failed)?;
        Ok(answer::json(StatusCode::OK, &told))
    }

    /// What the machine uses of its host, or has used. Upstream has no such thing.
    async fn usage(&self, asked: &Asked, order: Order) -> Result<Response<Body>, Refusal> {
        let vmi = asked.objects.instance().await?;
        let node = decide::usage(&vmi)?;
        let told = self.order(asked, node, order).await?;
        Ok(answer::json(StatusCode::OK, &told))
    }

    /// Gives an order to whoever runs the machine.
    pub(crate) async fn order(&self, asked: &Asked, node: &str, order: Order) -> Result<Value, Refusal> {
        let key = asked.key();
        self.guests
            .order(node, &key, order)
            .await
            .map_err(|refusal| asked.not_reached(refusal))
    }
}

impl Asked {
    /// The instance.
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::new(
            &self.workspace,
            self.info.namespace.as_deref().unwrap_or_default(),
            &self.info.name,
        )
    }

    /// Why a machine was not reached, or did not do it.
    pub(crate) fn not_reached(&self, refusal: guests::Refusal) -> Refusal {
        let conflict = |why: &str| Refusal::conflict(About::Instance, &self.info.name, why);
        match refusal {
            guests::Refusal::NotRunning(_) => conflict("VMI is not running"),
            guests::Refusal::Conflict(why) => conflict(&why),
            guests::Refusal::Lacks(why) => Refusal::bad_request(why),
            guests::Refusal::NodeLost { .. } | guests::Refusal::Failed(_) => {
                Refusal::internal(&refusal.to_string())
            }
        }
    }
}

impl Hands {
    /// Changes the disks of an instance.
    async fn volume(&self, asked: &Asked, wanted: &VolumeChange) -> Result<Response<Body>, Refusal> {
        if !self.guests.can_plug() {
            let why = "disks do not come and go while a machine runs yet; change the VirtualMachine, and restart it";
            return Err(Refusal::conflict(About::Instance, &asked.info.name, why));
        }
        let objects = &asked.objects;
        let decide = async || decide::instance_volume(&objects.instance().await?, wanted);
        let dry_run = wanted.dry_run();
        objects
            .change(About::Instance, dry_run.as_deref(), decide)
            .await?;
        Ok(answer::done(StatusCode::ACCEPTED))
    }
}
