//! Cards that let single ports through.

use super::*;

#[test]
fn a_card_lets_only_the_ports_through_that_it_names() {
    let mut plan = plan();
    plan.guests[1].accepts = Some(vec![(TCP, 8080)]);
    let mut switch = switch(plan.clone());
    for (what, to, dport, passes) in [
        ("a port that it names", ip(3), 8080, true),
        ("a Service that leads there", VIP, 80, true),
        ("another port", ip(3), 22, false),
    ] {
        let (verdict, _) = decided(&mut switch, 2, tcp(route(2, to), 4000, dport, SYN));
        match passes {
            true => assert_eq!(verdict, Verdict::Forward(port(3)), "{what}"),
            false => assert!(
                matches!(verdict, Verdict::Refuse(_, Reason::ClosedPort)),
                "{what}: {verdict:?}"
            ),
        }
    }
    let (verdict, _) = decided(&mut switch, 2, ping(route(2, ip(3)), 8, 1));
    assert_eq!(verdict, Verdict::Forward(port(3)), "what has no ports passes");
    let (verdict, _) = decided(&mut switch, 3, tcp(route(3, ip(2)), 5000, 22, SYN));
    assert_eq!(verdict, Verdict::Forward(port(2)), "what it opens itself passes");
    let (verdict, _) = decided(&mut switch, 2, tcp(route(2, ip(3)), 22, 5000, SYN_ACK));
    assert_eq!(verdict, Verdict::Forward(port(3)), "as do the answers");

    // The node is no exception, unlike with policies.
    let from_node = |switch: &mut Switch, dport| {
        let open = switch.open_from_node(SHOP, (ip(3), dport), TCP, None, 0);
        open.map(|open| open.tuple)
    };
    assert_eq!(from_node(&mut switch, 22), Err(Denied::ClosedPort(ip(3), 22)));
    let open = from_node(&mut switch, 8080).unwrap();

    // A port that is closed later is closed for connections that are there.
    plan.guests[1].accepts = Some(vec![]);
    switch.update(Arc::new(Topology::new(2, plan).unwrap()));
    let (verdict, _) = decided(&mut switch, 2, tcp(route(2, ip(3)), 4000, 8080, ACK));
    assert_eq!(verdict, Verdict::Drop(Reason::ClosedPort));
    let (verdict, _) = decided(&mut switch, 3, tcp(route(3, GATEWAY), 8080, open.sport, SYN_ACK));
    assert_eq!(verdict, Verdict::Drop(Reason::ClosedPort));
}
