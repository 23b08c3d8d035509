//! Consoles, screens and ports, over a real WebSocket.

use std::sync::atomic::Ordering;
use std::time::Duration;

use fairway_machines_guests::Refusal;
use futures::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::stand_in::Manner;
use crate::world::{Socket, World, everywhere};

const PATIENCE: Duration = Duration::from_secs(20);

/// Reads until so much was heard.
async fn hear(socket: &mut Socket, wanted: usize) -> Vec<u8> {
    let mut heard = Vec::new();
    while heard.len() < wanted {
        match timeout(PATIENCE, socket.next()).await.expect("nothing comes") {
            Some(Ok(Message::Binary(bytes))) => heard.extend(bytes),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            other => panic!("{other:?} after {:?}", String::from_utf8_lossy(&heard)),
        }
    }
    heard
}

/// How the connection ends.
async fn end(socket: &mut Socket) -> Result<Option<CloseFrame>, Error> {
    loop {
        match timeout(PATIENCE, socket.next()).await.expect("there is no end") {
            Some(Ok(Message::Close(frame))) => return Ok(frame),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error),
            None => return Ok(None),
        }
    }
}

async fn running(world: &World) {
    world.machine("vm", "Always").await;
    world.instance("vm", "Running").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn consoles_and_screens() {
    everywhere(|world| async move {
        running(&world).await;
        let mut console = world.open("virtualmachineinstances/vm/console").await.unwrap();
        assert_eq!(hear(&mut console, 7).await, b"login: ");
        assert_eq!(
            world.machines.taken(),
            [format!("Console of {}|vms/vm on n1", world.id)]
        );
        console.send(Message::binary("alice\r")).await.unwrap();
        assert_eq!(hear(&mut console, 6).await, b"alice\r");
        // However large a message is.
        let large = vec![b'x'; 1 << 20];
        let sent = large.clone();
        let (mut write, mut read) = console.split();
        let sending = tokio::spawn(async move {
            write.send(Message::binary(sent)).await.unwrap();
            write
        });
        let mut heard = 0;
        while heard < large.len() {
            if let Some(Ok(Message::Binary(bytes))) = read.next().await {
                heard += bytes.len();
            }
        }
        let write = sending.await.unwrap();
        let mut console = read.reunite(write).unwrap();
        console.send(Message::Ping("there?".into())).await.unwrap();
        let pong = timeout(PATIENCE, console.next()).await.unwrap();
        assert_eq!(pong.unwrap().unwrap(), Message::Pong("there?".into()));
        console.close(None).await.unwrap();
        assert!(end(&mut console).await.is_ok());

        let mut screen = world.open("virtualmachineinstances/vm/vnc").await.unwrap();
        assert_eq!(hear(&mut screen, 12).await, b"RFB 003.008\n");
        assert_eq!(
            world.machines.taken(),
            [format!("Vnc of {}|vms/vm on n1", world.id)]
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_ends_hangs_up_its_console_and_closes_its_ports() {
    everywhere(|world| async move {
        running(&world).await;
        *world.machines.manner.lock().unwrap() = Manner::Brief;
        let mut console = world.open("virtualmachineinstances/vm/console").await.unwrap();
        hear(&mut console, 7).await;
        // virtctl tells people why that may be only if nobody said goodbye.
        let ended = end(&mut console).await;
        assert!(
            matches!(
                ended,
                Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))
            ),
            "{ended:?}"
        );
        let mut port = world
            .open("virtualmachineinstances/vm/portforward/22")
            .await
            .unwrap();
        hear(&mut port, 11).await;
        assert_eq!(u16::from(end(&mut port).await.unwrap().unwrap().code), 1000);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_lead_to_the_address_of_the_machine() {
    everywhere(|world| async move {
        running(&world).await;
        for path in [
            "virtualmachineinstances/vm/portforward/22",
            "virtualmachineinstances/vm/portforward/22/tcp",
            "virtualmachines/vm/portforward/22/tcp",
        ] {
            let mut port = world.open(path).await.unwrap();
            assert_eq!(hear(&mut port, 11).await, b"SSH-2.0-x\r\n");
            let to = format!("10.88.0.7 port 22 in workspace {}", world.id);
            assert_eq!(world.machines.taken(), [to]);
        }
        for (path, expected) in [
            (
                "virtualmachineinstances/vm/portforward/1",
                "500 Internal error occurred: dialing VM: ",
            ),
            ("virtualmachineinstances/vm/portforward/22/udp", "400 UDP ports"),
            (
                "virtualmachineinstances/vm/portforward/ssh",
                "400 \"ssh\" is not a port",
            ),
            (
                "virtualmachineinstances/vm/portforward",
                "400 port must not be empty",
            ),
            ("virtualmachineinstances/none/portforward/22", "404"),
        ] {
            let refused = world.open(path).await.err().unwrap();
            assert!(refused.line().starts_with(expected), "{path}: {}", refused.line());
            assert_eq!(refused.kind, "application/json");
        }
        world.condition("vm", "Paused").await;
        let refused = world
            .open("virtualmachines/vm/portforward/22")
            .await
            .err()
            .unwrap();
        assert!(refused.line().ends_with("VMI is paused"), "{}", refused.line());
        world
            .says(
                "vm",
                json!({"conditions": [], "interfaces": [{"name": "default"}], "phase": "Scheduled"}),
            )
            .await;
        let refused = world
            .open("virtualmachines/vm/portforward/22")
            .await
            .err()
            .unwrap();
        assert!(
            refused.line().contains("have no address yet"),
            "{}",
            refused.line()
        );
        let refused = world
            .open("virtualmachineinstances/vm/console")
            .await
            .err()
            .unwrap();
        assert_eq!(refused.line(), "400 VMI is not running");
        world.machine("off", "Halted").await;
        let refused = world
            .open("virtualmachines/off/portforward/22")
            .await
            .err()
            .unwrap();
        assert!(
            refused.line().ends_with("VMI is not started"),
            "{}",
            refused.line()
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_says_no_is_heard() {
    everywhere(|world| async move {
        running(&world).await;
        let refusal = Refusal::Lacks("the machine has no screen".to_owned());
        world.machines.answers.lock().unwrap().push_back(Err(refusal));
        let refused = world.open("virtualmachineinstances/vm/vnc").await.err().unwrap();
        assert_eq!(refused.line(), "400 the machine has no screen");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_said_everything_still_hears() {
    everywhere(|world| async move {
        running(&world).await;
        *world.machines.manner.lock().unwrap() = Manner::Count;
        let mut port = world
            .open("virtualmachineinstances/vm/portforward/80")
            .await
            .unwrap();
        port.send(Message::binary("GET /")).await.unwrap();
        let done = CloseFrame {
            code: 4000.into(),
            reason: "".into(),
        };
        // Not `close`, which would not listen any more.
        port.send(Message::Close(Some(done))).await.unwrap();
        let mut heard = Vec::new();
        let code = loop {
            match timeout(PATIENCE, port.next()).await.unwrap() {
                Some(Ok(Message::Binary(bytes))) => heard.extend(bytes),
                Some(Ok(Message::Close(frame))) => break frame.map(|it| u16::from(it.code)),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(heard, b"5 bytes");
        assert_eq!(code, Some(1000));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_vanishes_is_noticed_by_the_machine() {
    everywhere(|world| async move {
        running(&world).await;
        let (ended, mut ends) = mpsc::unbounded_channel();
        *world.machines.ended.lock().unwrap() = Some(ended);
        let mut console = world.open("virtualmachineinstances/vm/console").await.unwrap();
        hear(&mut console, 7).await;
        drop(console);
        timeout(PATIENCE, ends.recv())
            .await
            .expect("the machine still waits");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_floods_waits_for_who_looks() {
    everywhere(|world| async move {
        running(&world).await;
        *world.machines.manner.lock().unwrap() = Manner::Flood;
        let (ended, mut ends) = mpsc::unbounded_channel();
        *world.machines.ended.lock().unwrap() = Some(ended);
        let mut console = world.open("virtualmachineinstances/vm/console").await.unwrap();
        // Nobody reads: the buffers of the connection fill, and then nothing moves.
        let mut before = 0;
        for _ in 0..200 {
            sleep(Duration::from_millis(100)).await;
            let now = world.machines.flooded.load(Ordering::SeqCst);
            if now == before && now > 0 {
                break;
            }
            before = now;
        }
        let stuck = world.machines.flooded.load(Ordering::SeqCst);
        assert!(stuck < 32 << 20, "{stuck} bytes were taken and read by nobody");
        // Somebody reads: it moves again, and he can end it.
        let wanted = usize::try_from(stuck).unwrap() + (1 << 20);
        hear(&mut console, wanted).await;
        drop(console);
        timeout(PATIENCE, ends.recv())
            .await
            .expect("the machine still sends");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_not_taken_for_bytes() {
    everywhere(|world| async move {
        running(&world).await;
        let mut console = world.open("virtualmachineinstances/vm/console").await.unwrap();
        console.send(Message::text("hello")).await.unwrap();
        let frame = end(&mut console).await.unwrap().unwrap();
        assert_eq!(u16::from(frame.code), 1003);
        assert!(frame.reason.contains("binary"), "{}", frame.reason);
    })
    .await;
}
