//! Certificates, laid out as Go's `x509.CreateCertificate` lays them out.

use std::net::IpAddr;

use base64::Engine;
use num_bigint::BigUint;
use sha1::{Digest, Sha1};

use super::der::{self, BOOLEAN, OCTET_STRING, Reader, SEQUENCE};
use super::keys::Key;
use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Param};
use crate::machine::Machine;
use crate::text::lossy;
use crate::time::{SECOND, Time};
use crate::value::{FieldType, StructType, Value};

use Param::{Int, List, Str};

type Answer = Result<Value, Fault>;

const CERTIFICATE_NAME: &str = "sprig.certificate";
const AUTHORITY: Param = Param::Struct(CERTIFICATE_NAME);

static CERTIFICATE: StructType = StructType {
    name: CERTIFICATE_NAME,
    pointer: false,
    fields: &[
        FieldType {
            name: "Cert",
            json: "Cert",
            omit_empty: false,
        },
        FieldType {
            name: "Key",
            json: "Key",
            omit_empty: false,
        },
    ],
    methods: &[],
    display: None,
    is_text: false,
    embedded: None,
};

pub(super) const TABLE: &[Func] = &[
    Func::new("genCA", &[Str, Int], |machine, args| {
        let key = Key::rsa(machine, 2048)?;
        authority(machine, args, &key)
    }),
    Func::new("genCAWithKey", &[Str, Int, Str], |machine, args| {
        authority(machine, args, &given_key(args, 2)?)
    }),
    Func::new("genSelfSignedCert", &[Str, List, List, Int], |machine, args| {
        let key = Key::rsa(machine, 2048)?;
        self_signed(machine, args, &key)
    }),
    Func::new(
        "genSelfSignedCertWithKey",
        &[Str, List, List, Int, Str],
        |machine, args| self_signed(machine, args, &given_key(args, 4)?),
    ),
    Func::new(
        "genSignedCert",
        &[Str, List, List, Int, AUTHORITY],
        |machine, args| {
            let key = Key::rsa(machine, 2048)?;
            signed(machine, args, &key)
        },
    ),
    Func::new(
        "genSignedCertWithKey",
        &[Str, List, List, Int, AUTHORITY, Str],
        |machine, args| signed(machine, args, &given_key(args, 5)?),
    ),
    Func::new("buildCustomCert", &[Str, Str], build_custom),
];

fn given_key(args: &[Value], at: usize) -> Result<Key, Fault> {
    Key::from_pem(&arg::text(args, at)).map_err(|fault| Fault::new(format!("parsing private key: {fault}")))
}

fn pair(certificate: String, key: String) -> Value {
    Value::structure(&CERTIFICATE, vec![certificate.into(), key.into()])
}

/// What goes into a certificate.
struct Content {
    common_name: String,
    addresses: Vec<IpAddr>,
    names: Vec<String>,
    days: i64,
    is_authority: bool,
}

impl Content {
    fn read(args: &[Value], days_at: usize, is_authority: bool) -> Result<Self, Fault> {
        let mut content = Self {
            common_name: arg::text(args, 0).into_owned(),
            addresses: Vec::new(),
            names: Vec::new(),
            days: arg::int(args, days_at),
            is_authority,
        };
        if days_at == 1 {
            return Ok(content);
        }
        for item in items(args, 1) {
            let Value::Str(text) = item else {
                let shown = crate::fmt::print_bounded(item);
                return Err(format!("error parsing ip: {shown} is not a string").into());
            };
            let text = lossy(text);
            content
                .addresses
                .push(text.parse().map_err(|_| format!("error parsing ip: {text}"))?);
        }
        for item in items(args, 2) {
            let Value::Str(text) = item else {
                let shown = crate::fmt::print_bounded(item);
                return Err(format!("error processing alternate dns name: {shown} is not a string").into());
            };
            content.names.push(lossy(text).into_owned());
        }
        Ok(content)
    }
}

fn items(args: &[Value], at: usize) -> &[Value] {
    match args.get(at) {
        Some(Value::List(list)) => &list.items,
        _ => &[],
    }
}

/// Who signs: a name as it is in a certificate, and the identifier of the key.
struct Issuer {
    name: Vec<u8>,
    key_id: Option<Vec<u8>>,
}

fn authority(machine: &mut Machine<'_>, args: &[Value], key: &Key) -> Answer {
    let content = Content::read(args, 1, true)?;
    let certificate = create(machine, &content, key, None, key)?;
    Ok(pair(certificate, key.to_pem()?))
}

fn self_signed(machine: &mut Machine<'_>, args: &[Value], key: &Key) -> Answer {
    let content = Content::read(args, 3, false)?;
    let certificate = create(machine, &content, key, None, key)?;
    Ok(pair(certificate, key.to_pem()?))
}

fn signed(machine: &mut Machine<'_>, args: &[Value], key: &Key) -> Answer {
    let content = Content::read(args, 3, false)?;
    let field = |name: &str| match arg::any(args, 4) {
        Value::Struct(authority) => authority
            .field(name.as_bytes())
            .and_then(Value::as_str)
            .map(|text| lossy(text).into_owned()),
        _ => None,
    };
    let certificate = field("Cert").unwrap_or_default();
    let (_, bytes) = der::from_pem(&certificate).ok_or("unable to decode certificate")?;
    let issuer = read_issuer(&bytes).ok_or("error parsing certificate: the certificate is broken")?;
    let authority_key = Key::from_pem(&field("Key").unwrap_or_default())
        .map_err(|fault| Fault::new(format!("error parsing private key: {fault}")))?;
    let certificate = create(machine, &content, key, Some(&issuer), &authority_key)?;
    Ok(pair(certificate, key.to_pem()?))
}

fn build_custom(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let decode = |at: usize, what: &str| {
        let decoded = base64::engine::general_purpose::STANDARD.decode(arg::bytes(args, at));
        decoded.map_err(|_| Fault::new(format!("unable to decode base64 {what}")))
    };
    let (certificate, key) = (decode(0, "certificate")?, decode(1, "private key")?);
    let (certificate, key) = (lossy(&certificate).into_owned(), lossy(&key).into_owned());
    let (_, bytes) = der::from_pem(&certificate).ok_or("unable to decode certificate")?;
    if read_issuer(&bytes).is_none() {
        return Err("error parsing certificate: decodedCert.Bytes: x509: malformed certificate".into());
    }
    Key::from_pem(&key).map_err(|fault| Fault::new(format!("error parsing private key: {fault}")))?;
    Ok(pair(certificate, key))
}

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const SUBJECT_KEY_ID: &[u8] = &[0x55, 0x1d, 0x0e];
const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 0x23];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const SERVER_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
const CLIENT_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];

/// The name of a certificate's subject, and its key's identifier.
fn read_issuer(certificate: &[u8]) -> Option<Issuer> {
    let inner = Reader(certificate).expect(SEQUENCE)?;
    let mut fields = Reader(Reader(inner).expect(SEQUENCE)?);
    let mut next = fields.next()?;
    if next.0 == 0xa0 {
        next = fields.next()?;
    }
    // The serial number is read; signature, issuer and validity follow.
    let _ = next;
    fields.expect(SEQUENCE)?;
    fields.expect(SEQUENCE)?;
    fields.expect(SEQUENCE)?;
    let (_, _, subject) = fields.next().filter(|(tag, ..)| *tag == SEQUENCE)?;
    fields.expect(SEQUENCE)?;
    let mut key_id = None;
    while let Some((tag, content, _)) = fields.next() {
        if tag != 0xa3 {
            continue;
        }
        let mut extensions = Reader(Reader(content).expect(SEQUENCE)?);
        while let Some(extension) = extensions.expect(SEQUENCE) {
            let mut parts = Reader(extension);
            let name = parts.expect(der::OID)?;
            let mut value = parts.next()?;
            if value.0 == BOOLEAN {
                value = parts.next()?;
            }
            if name == SUBJECT_KEY_ID {
                key_id = Some(Reader(value.1).expect(OCTET_STRING)?.to_vec());
            }
        }
    }
    Some(Issuer {
        name: subject.to_vec(),
        key_id,
    })
}

fn name(common_name: &str) -> Vec<u8> {
    if common_name.is_empty() {
        return der::sequence(&[]);
    }
    let printable = |byte: u8| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte);
    let tag = match common_name.bytes().all(printable) {
        true => der::PRINTABLE_STRING,
        false => der::UTF8_STRING,
    };
    let attribute = der::sequence(&[der::oid(COMMON_NAME), der::tagged(tag, common_name.as_bytes())]);
    der::sequence(&[der::tagged(der::SET, &attribute)])
}

fn time(nanos: i128) -> Vec<u8> {
    let time = Time::utc(nanos);
    let year: i64 = time.format("2006").parse().unwrap_or(0);
    match (1950..2050).contains(&year) {
        true => der::tagged(der::UTC_TIME, time.format("060102150405Z").as_bytes()),
        false => der::tagged(der::GENERALIZED_TIME, time.format("20060102150405Z").as_bytes()),
    }
}

fn extension(id: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let mut parts = vec![der::oid(id)];
    if critical {
        parts.push(der::tagged(BOOLEAN, &[0xff]));
    }
    parts.push(der::tagged(OCTET_STRING, value));
    der::sequence(&parts)
}

fn extensions(content: &Content, key: &Key, issuer: Option<&Issuer>) -> Result<Vec<Vec<u8>>, Fault> {
    // Digital signature and key encipherment, and for an authority the signing of certificates.
    let usage: &[u8] = if content.is_authority {
        &[2, 0xa4]
    } else {
        &[5, 0xa0]
    };
    let constraints = match content.is_authority {
        true => der::sequence(&[der::tagged(BOOLEAN, &[0xff])]),
        false => der::sequence(&[]),
    };
    let mut extensions = vec![
        extension(KEY_USAGE, true, &der::tagged(der::BIT_STRING, usage)),
        extension(
            EXTENDED_KEY_USAGE,
            false,
            &der::sequence(&[der::oid(SERVER_AUTH), der::oid(CLIENT_AUTH)]),
        ),
        extension(BASIC_CONSTRAINTS, true, &constraints),
    ];
    if content.is_authority {
        let id = Sha1::digest(key.public_bits()?);
        extensions.push(extension(SUBJECT_KEY_ID, false, &der::tagged(OCTET_STRING, &id)));
    }
    if let Some(id) = issuer.and_then(|issuer| issuer.key_id.as_ref()) {
        extensions.push(extension(
            AUTHORITY_KEY_ID,
            false,
            &der::sequence(&[der::tagged(0x80, id)]),
        ));
    }
    if !content.names.is_empty() || !content.addresses.is_empty() {
        let names = content
            .names
            .iter()
            .map(|name| der::tagged(0x82, name.as_bytes()));
        let addresses = content.addresses.iter().map(|address| match address {
            IpAddr::V4(address) => der::tagged(0x87, &address.octets()),
            IpAddr::V6(address) => der::tagged(0x87, &address.octets()),
        });
        let all: Vec<Vec<u8>> = names.chain(addresses).collect();
        let critical = content.common_name.is_empty();
        extensions.push(extension(ALTERNATIVE_NAMES, critical, &der::sequence(&all)));
    }
    Ok(extensions)
}

/// A certificate as PEM. Without an issuer it is its own.
fn create(
    machine: &mut Machine<'_>,
    content: &Content,
    key: &Key,
    issuer: Option<&Issuer>,
    signer: &Key,
) -> Result<String, Fault> {
    machine.spend(100_000)?;
    let mut serial = [0; 16];
    machine.entropy(&mut serial);
    let subject = name(&content.common_name);
    // An issuer of the same name is taken for the certificate itself.
    let foreign = issuer.filter(|issuer| issuer.name != subject);
    let nanos = i128::from(content.days) * 86_400 * i128::from(SECOND);
    let fields = [
        der::tagged(0xa0, &der::small(2)),
        der::integer(&BigUint::from_bytes_be(&serial)),
        signer.signature_algorithm(),
        issuer.map_or_else(|| subject.clone(), |issuer| issuer.name.clone()),
        der::sequence(&[time(machine.now()), time(machine.now() + nanos)]),
        subject.clone(),
        key.public_info()?,
        der::tagged(0xa3, &der::sequence(&extensions(content, key, foreign)?)),
    ];
    let body = der::sequence(&fields);
    let signature = signer.sign(&body)?;
    let certificate = der::sequence(&[body, signer.signature_algorithm(), signature]);
    Ok(der::to_pem("CERTIFICATE", &certificate))
}
