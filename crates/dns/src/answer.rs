//! A question and a zone to an answer.

use std::net::Ipv4Addr;

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, CNAME, PTR, SOA, SRV, TXT};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};

use crate::zone::{Data, Zone};

/// Seconds for which an answer may be kept. Short, as in Kubernetes: machines come and go.
pub const TTL: u32 = 5;

/// How many aliases are followed within the zone.
const ALIASES: usize = 8;

/// What a question comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Reply(Message),
    /// The zone does not know the name, and somebody else may.
    Ask(Query),
    /// An alias leads out of the zone: `reply` so far, and the question that completes it.
    Complete {
        reply: Message,
        ask: Query,
    },
}

/// Answers a question by the zones that the asker knows: the first that owns a name decides. `can_ask`: whether there is anybody
/// else to ask.
pub fn answer(zones: &[&Zone], question: &Message, can_ask: bool) -> Outcome {
    let mut reply = Message::response(question.metadata.id, question.metadata.op_code);
    reply.metadata.recursion_desired = question.metadata.recursion_desired;
    reply.metadata.recursion_available = can_ask;
    let failed = |mut reply: Message, code| {
        reply.metadata.response_code = code;
        Outcome::Reply(reply)
    };
    if question.metadata.op_code != OpCode::Query {
        return failed(reply, ResponseCode::NotImp);
    }
    let [query] = question.queries.as_slice() else {
        return failed(reply, ResponseCode::FormErr);
    };
    reply.add_query(query.clone());
    if question.edns.as_ref().is_some_and(|edns| edns.version() > 0) {
        return failed(reply, ResponseCode::BADVERS);
    }
    if query.query_class() != DNSClass::IN {
        return failed(reply, ResponseCode::Refused);
    }
    if matches!(query.query_type(), RecordType::AXFR | RecordType::IXFR) {
        return failed(reply, ResponseCode::Refused);
    }
    let name = key(query.name());
    match owner(zones, &name) {
        Some(zone) => from_zone((zones, zone), query, name, reply, can_ask),
        None if can_ask => Outcome::Ask(query.clone()),
        None => failed(reply, ResponseCode::Refused),
    }
}

fn owner<'z>(zones: &[&'z Zone], name: &str) -> Option<&'z Zone> {
    zones.iter().copied().find(|zone| zone.owns(name))
}

fn from_zone(
    (zones, mut zone): (&[&Zone], &Zone),
    query: &Query,
    mut name: String,
    mut reply: Message,
    can_ask: bool,
) -> Outcome {
    reply.metadata.authoritative = true;
    let wanted = query.query_type();
    let mut alias_of = query.name().clone();
    for _ in 0..ALIASES {
        let Some(records) = zone.records(&name) else {
            if reply.answers.is_empty() {
                reply.metadata.response_code = ResponseCode::NXDomain;
            }
            break;
        };
        for data in records {
            if let Some(rdata) = rdata(data, wanted) {
                reply.add_answer(Record::from_rdata(alias_of.clone(), TTL, rdata));
            }
        }
        let alias = records.iter().find_map(|data| match data {
            Data::Cname(target) if wanted != RecordType::CNAME => Some(target),
            _ => None,
        });
        let Some(target) = alias else {
            break;
        };
        let Ok(target_name) = absolute(target) else {
            reply.metadata.response_code = ResponseCode::ServFail;
            break;
        };
        if wanted != RecordType::ANY {
            let cname = RData::CNAME(CNAME(target_name.clone()));
            reply.add_answer(Record::from_rdata(alias_of, TTL, cname));
        }
        let Some(next) = owner(zones, target) else {
            if can_ask {
                let mut ask = Query::query(target_name, wanted);
                ask.set_query_class(DNSClass::IN);
                return Outcome::Complete { reply, ask };
            }
            break;
        };
        zone = next;
        alias_of = target_name;
        name.clone_from(target);
    }
    if reply.answers.is_empty() {
        reply.authorities.extend(authority(zone));
    } else {
        spread(&mut reply);
    }
    Outcome::Reply(reply)
}

/// Several addresses come in another order each time, so that not everybody takes the first.
fn spread(reply: &mut Message) {
    let is_address = |record: &Record| matches!(record.data, RData::A(_));
    let Some(first) = reply.answers.iter().position(is_address) else {
        return;
    };
    let addresses = &mut reply.answers[first..];
    let by = usize::from(reply.metadata.id) % addresses.len();
    addresses.rotate_left(by);
}

fn rdata(data: &Data, wanted: RecordType) -> Option<RData> {
    let (kind, rdata) = match data {
        Data::A(address) => (RecordType::A, RData::A(A(*address))),
        Data::Ptr(target) => (RecordType::PTR, RData::PTR(PTR(absolute(target).ok()?))),
        Data::Cname(target) => (RecordType::CNAME, RData::CNAME(CNAME(absolute(target).ok()?))),
        Data::Srv { port, target } => (
            RecordType::SRV,
            RData::SRV(SRV::new(0, 100, *port, absolute(target).ok()?)),
        ),
        Data::Txt(text) => (RecordType::TXT, RData::TXT(TXT::new(vec![text.clone()]))),
    };
    (wanted == kind || wanted == RecordType::ANY).then_some(rdata)
}

/// Says for how long it may be remembered that there is nothing.
fn authority(zone: &Zone) -> Option<Record> {
    let domain = zone.domain();
    let soa = SOA::new(
        absolute(&format!("ns.dns.{domain}")).ok()?,
        absolute(&format!("hostmaster.{domain}")).ok()?,
        1,
        7200,
        1800,
        86_400,
        TTL,
    );
    Some(Record::from_rdata(absolute(domain).ok()?, TTL, RData::SOA(soa)))
}

fn absolute(name: &str) -> Result<Name, hickory_proto::ProtoError> {
    let mut name = Name::from_ascii(name)?;
    name.set_fqdn(true);
    Ok(name)
}

/// A name as zones write it.
fn key(name: &Name) -> String {
    let mut text = name.to_ascii().to_ascii_lowercase();
    while text.ends_with('.') {
        text.pop();
    }
    text
}

/// A reply to something that is no question that we can read, if it was a question at all.
pub fn unreadable(message: &[u8]) -> Option<Message> {
    let (&[high, low, flags, ..], true) = (message, message.len() >= 12) else {
        return None;
    };
    // Answers are not answered, or two servers would talk forever.
    (flags & 0x80 == 0).then(|| {
        Message::error_msg(
            u16::from_be_bytes([high, low]),
            OpCode::Query,
            ResponseCode::FormErr,
        )
    })
}

/// Whether a message is a question.
pub fn is_question(message: &Message) -> bool {
    message.metadata.message_type == MessageType::Query
}

/// The addresses of a reply, for tests and callers that only want those.
pub fn addresses(reply: &Message) -> Vec<Ipv4Addr> {
    reply
        .answers
        .iter()
        .filter_map(|record| match &record.data {
            RData::A(A(address)) => Some(*address),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests;
