//! Private keys: made, written, read, and used to sign.

use num_bigint::BigUint;
use ring::signature::{Ed25519KeyPair, KeyPair};
use sha2::{Digest, Sha256};

use super::curve;
use super::der::{self, BIT_STRING, NULL, OCTET_STRING, Reader, SEQUENCE};
use super::primes::{prime, prime_above};
use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Param};
use crate::machine::Machine;

pub(super) const TABLE: &[Func] = &[Func::new("genPrivateKey", &[Param::Str], |machine, args| {
    let kind = arg::text(args, 0);
    let key = match kind.as_ref() {
        "" | "rsa" => Key::rsa(machine, 4096)?,
        "dsa" => return Ok(dsa(machine)?.into()),
        "ecdsa" => {
            let mut chance = [0; 40];
            machine.entropy(&mut chance);
            Key::Ec(curve::private_key(&chance))
        }
        "ed25519" => {
            let mut seed = [0; 32];
            machine.entropy(&mut seed);
            Key::Ed25519(seed)
        }
        other => return Ok(format!("Unknown type {other}").into()),
    };
    Ok(key.to_pem()?.into())
})];

const RSA_OID: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const SHA256_RSA_OID: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
const SHA256_OID: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
const EC_OID: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256_OID: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ECDSA_OID: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const ED25519_OID: &[u8] = &[0x2b, 0x65, 0x70];

/// A private key.
pub(super) enum Key {
    Rsa(Box<Rsa>),
    Ec(BigUint),
    Ed25519([u8; 32]),
}

/// An RSA key, with what makes it quick.
pub(super) struct Rsa {
    n: BigUint,
    e: BigUint,
    d: BigUint,
    p: BigUint,
    q: BigUint,
}

impl Rsa {
    fn new(p: BigUint, q: BigUint) -> Option<Self> {
        let e = BigUint::from(65_537_u32);
        let phi = (&p - 1_u32) * (&q - 1_u32);
        let d = e.modinv(&phi)?;
        let (p, q) = if p > q { (p, q) } else { (q, p) };
        Some(Self {
            n: &p * &q,
            e,
            d,
            p,
            q,
        })
    }

    /// Raises to the private power, with half as long numbers.
    fn private_power(&self, message: &BigUint) -> Option<BigUint> {
        let power = |prime: &BigUint| message.modpow(&(&self.d % (prime - 1_u32)), prime);
        let (by_p, by_q) = (power(&self.p), power(&self.q));
        let inverse = self.q.modinv(&self.p)?;
        let difference = (&by_p + &self.p - &by_q % &self.p) % &self.p;
        Some(by_q + inverse * difference % &self.p * &self.q)
    }

    fn pkcs1(&self) -> Option<Vec<u8>> {
        let numbers = [
            &self.n,
            &self.e,
            &self.d,
            &self.p,
            &self.q,
            &(&self.d % (&self.p - 1_u32)),
            &(&self.d % (&self.q - 1_u32)),
            &self.q.modinv(&self.p)?,
        ];
        let mut parts = vec![der::small(0)];
        parts.extend(numbers.iter().map(|number| der::integer(number)));
        Some(der::sequence(&parts))
    }

    fn from_pkcs1(bytes: &[u8]) -> Option<Self> {
        let mut fields = Reader(Reader(bytes).expect(SEQUENCE)?);
        fields.number()?;
        let (n, e, d) = (fields.number()?, fields.number()?, fields.number()?);
        let (p, q) = (fields.number()?, fields.number()?);
        // A key that does not hold together would give signatures that nobody accepts.
        (&p * &q == n && p > BigUint::from(3_u32) && q > BigUint::from(3_u32)).then_some(Self {
            n,
            e,
            d,
            p,
            q,
        })
    }
}

const BROKEN: &str = "the key cannot be used";

impl Key {
    /// A new RSA key.
    pub(super) fn rsa(machine: &mut Machine<'_>, bits: usize) -> Result<Self, Fault> {
        loop {
            let (p, q) = (prime(machine, bits / 2)?, prime(machine, bits / 2)?);
            if p != q
                && let Some(key) = Rsa::new(p, q)
            {
                return Ok(Self::Rsa(Box::new(key)));
            }
            machine.spend(1000)?;
        }
    }

    pub(super) fn to_pem(&self) -> Result<String, Fault> {
        Ok(match self {
            Self::Rsa(key) => der::to_pem("RSA PRIVATE KEY", &key.pkcs1().ok_or(BROKEN)?),
            Self::Ec(private) => {
                let public = curve::public_key(private).ok_or(BROKEN)?;
                let parts = [
                    der::small(1),
                    der::tagged(OCTET_STRING, &curve::fixed(private)),
                    der::tagged(0xa0, &der::oid(P256_OID)),
                    der::tagged(0xa1, &der::bits(&public)),
                ];
                der::to_pem("EC PRIVATE KEY", &der::sequence(&parts))
            }
            Self::Ed25519(seed) => {
                let inner = der::tagged(OCTET_STRING, &der::tagged(OCTET_STRING, seed));
                let parts = [der::small(0), der::sequence(&[der::oid(ED25519_OID)]), inner];
                der::to_pem("PRIVATE KEY", &der::sequence(&parts))
            }
        })
    }

    pub(super) fn from_pem(text: &str) -> Result<Self, Fault> {
        let (kind, bytes) = der::from_pem(text).ok_or("no PEM data in input")?;
        let parsed = match kind.as_str() {
            "PRIVATE KEY" => Self::from_pkcs8(&bytes)
                .ok_or("decoding PEM as PKCS#8: the key is broken or of an unknown kind"),
            "RSA PRIVATE KEY" => Rsa::from_pkcs1(&bytes)
                .map(|key| Self::Rsa(Box::new(key)))
                .ok_or("parsing RSA private key from PEM: the key is broken"),
            "EC PRIVATE KEY" => Self::from_sec1(&bytes)
                .ok_or("parsing EC private key from PEM: the key is broken or not on P-256"),
            "DSA PRIVATE KEY" => Err("DSA keys cannot sign certificates"),
            other if other.ends_with(" PRIVATE KEY") => {
                return Err(format!("invalid private key type {other}").into());
            }
            other => return Err(format!("no private key data in PEM block of type {other}").into()),
        };
        Ok(parsed?)
    }

    fn from_sec1(bytes: &[u8]) -> Option<Self> {
        let mut fields = Reader(Reader(bytes).expect(SEQUENCE)?);
        fields.number()?;
        let private = BigUint::from_bytes_be(fields.expect(OCTET_STRING)?);
        let on_curve = match fields.next() {
            Some((0xa0, content, _)) => Reader(content).expect(der::OID)? == P256_OID,
            _ => true,
        };
        on_curve.then_some(Self::Ec(private))
    }

    fn from_pkcs8(bytes: &[u8]) -> Option<Self> {
        let mut fields = Reader(Reader(bytes).expect(SEQUENCE)?);
        fields.number()?;
        let algorithm = Reader(fields.expect(SEQUENCE)?).expect(der::OID)?;
        let inner = fields.expect(OCTET_STRING)?;
        match algorithm {
            RSA_OID => Rsa::from_pkcs1(inner).map(|key| Self::Rsa(Box::new(key))),
            EC_OID => Self::from_sec1(inner),
            ED25519_OID => Some(Self::Ed25519(
                Reader(inner).expect(OCTET_STRING)?.try_into().ok()?,
            )),
            _ => None,
        }
    }

    fn ed25519(seed: &[u8; 32]) -> Result<Ed25519KeyPair, Fault> {
        Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| BROKEN.into())
    }

    /// The bits of the public key, over which key identifiers are computed.
    pub(super) fn public_bits(&self) -> Result<Vec<u8>, Fault> {
        Ok(match self {
            Self::Rsa(key) => der::sequence(&[der::integer(&key.n), der::integer(&key.e)]),
            Self::Ec(private) => curve::public_key(private).ok_or(BROKEN)?,
            Self::Ed25519(seed) => Self::ed25519(seed)?.public_key().as_ref().to_vec(),
        })
    }

    /// The public key as a certificate has it.
    pub(super) fn public_info(&self) -> Result<Vec<u8>, Fault> {
        let algorithm = match self {
            Self::Rsa(_) => [der::oid(RSA_OID), der::tagged(NULL, &[])].concat(),
            Self::Ec(_) => [der::oid(EC_OID), der::oid(P256_OID)].concat(),
            Self::Ed25519(_) => der::oid(ED25519_OID),
        };
        Ok(der::sequence(&[
            der::tagged(SEQUENCE, &algorithm),
            der::bits(&self.public_bits()?),
        ]))
    }

    /// The name of what [`Self::sign`] does.
    pub(super) fn signature_algorithm(&self) -> Vec<u8> {
        match self {
            Self::Rsa(_) => der::sequence(&[der::oid(SHA256_RSA_OID), der::tagged(NULL, &[])]),
            Self::Ec(_) => der::sequence(&[der::oid(ECDSA_OID)]),
            Self::Ed25519(_) => der::sequence(&[der::oid(ED25519_OID)]),
        }
    }

    /// A signature in bits.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Fault> {
        let signature = match self {
            Self::Rsa(key) => {
                let algorithm = der::sequence(&[der::oid(SHA256_OID), der::tagged(NULL, &[])]);
                let digest = der::tagged(OCTET_STRING, &Sha256::digest(message));
                let info = der::sequence(&[algorithm, digest]);
                let size = key.n.bits().div_ceil(8) as usize;
                let filler = size.checked_sub(info.len() + 3).ok_or(BROKEN)?;
                let padded = [&[0, 1], vec![0xff; filler].as_slice(), &[0], &info].concat();
                let power = key
                    .private_power(&BigUint::from_bytes_be(&padded))
                    .ok_or(BROKEN)?;
                let bytes = power.to_bytes_be();
                let mut signature = vec![0; size.saturating_sub(bytes.len())];
                signature.extend_from_slice(&bytes);
                signature
            }
            Self::Ec(private) => {
                let (r, s) = curve::sign(private, message).ok_or(BROKEN)?;
                der::sequence(&[der::integer(&r), der::integer(&s)])
            }
            Self::Ed25519(seed) => Self::ed25519(seed)?.sign(message).as_ref().to_vec(),
        };
        Ok(der::tagged(BIT_STRING, &[&[0], signature.as_slice()].concat()))
    }
}

/// A DSA key of 2048 and 256 bits, which nothing here can use.
fn dsa(machine: &mut Machine<'_>) -> Result<String, Fault> {
    let q = prime(machine, 256)?;
    let p = prime_above(machine, 2048, &q)?;
    let one = BigUint::from(1_u32);
    let power = (&p - &one) / &q;
    let mut g = one.clone();
    let mut base = 2_u32;
    while g == one {
        g = BigUint::from(base).modpow(&power, &p);
        base += 1;
    }
    let mut chance = [0; 40];
    machine.entropy(&mut chance);
    let x = BigUint::from_bytes_be(&chance) % (&q - &one) + &one;
    let y = g.modpow(&x, &p);
    let mut parts = vec![der::small(0)];
    parts.extend([&p, &q, &g, &y, &x].map(der::integer));
    Ok(der::to_pem("DSA PRIVATE KEY", &der::sequence(&parts)))
}
