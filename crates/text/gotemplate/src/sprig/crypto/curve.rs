//! The elliptic curve P-256: public keys and signatures. Not hardened against those who measure time: whoever renders
//! a chart holds the key anyway.

use num_bigint::BigUint;
use sha2::{Digest, Sha256};

fn number(hex: &[u8]) -> BigUint {
    BigUint::parse_bytes(hex, 16).unwrap_or_default()
}

struct Curve {
    p: BigUint,
    n: BigUint,
    generator: Point,
}

/// A point in Jacobian coordinates; `z` is zero at infinity.
#[derive(Clone)]
struct Point {
    x: BigUint,
    y: BigUint,
    z: BigUint,
}

fn curve() -> Curve {
    Curve {
        p: number(b"ffffffff00000001000000000000000000000000ffffffffffffffffffffffff"),
        n: number(b"ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"),
        generator: Point {
            x: number(b"6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"),
            y: number(b"4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"),
            z: BigUint::from(1_u32),
        },
    }
}

impl Curve {
    fn sub(&self, left: &BigUint, right: &BigUint) -> BigUint {
        (left + &self.p - right % &self.p) % &self.p
    }

    fn double(&self, point: &Point) -> Point {
        let p = &self.p;
        let zz = &point.z * &point.z % p;
        let yy = &point.y * &point.y % p;
        let slope = self.sub(&point.x, &zz) * (&point.x + &zz) * 3_u32 % p;
        let four_xyy = &point.x * &yy * 4_u32 % p;
        let x = self.sub(&(&slope * &slope % p), &(&four_xyy * 2_u32 % p));
        let y = self.sub(&(&slope * self.sub(&four_xyy, &x) % p), &(&yy * &yy * 8_u32 % p));
        let z = &point.y * &point.z * 2_u32 % p;
        Point { x, y, z }
    }

    fn add(&self, left: &Point, right: &Point) -> Point {
        let p = &self.p;
        let zero = BigUint::default();
        if left.z == zero {
            return right.clone();
        }
        if right.z == zero {
            return left.clone();
        }
        let (z1, z2) = (&left.z * &left.z % p, &right.z * &right.z % p);
        let (u1, u2) = (&left.x * &z2 % p, &right.x * &z1 % p);
        let (s1, s2) = (&left.y * &z2 * &right.z % p, &right.y * &z1 * &left.z % p);
        if u1 == u2 {
            return match s1 == s2 {
                true => self.double(left),
                false => Point {
                    x: BigUint::from(1_u32),
                    y: BigUint::from(1_u32),
                    z: zero,
                },
            };
        }
        let h = self.sub(&u2, &u1);
        let r = self.sub(&s2, &s1);
        let hh = &h * &h % p;
        let hhh = &hh * &h % p;
        let v = &u1 * &hh % p;
        let x = self.sub(&self.sub(&(&r * &r % p), &hhh), &(&v * 2_u32 % p));
        let y = self.sub(&(&r * self.sub(&v, &x) % p), &(&s1 * &hhh % p));
        let z = &h * &left.z * &right.z % p;
        Point { x, y, z }
    }

    /// The plain coordinates of a multiple of the generator.
    fn multiple(&self, factor: &BigUint) -> Option<(BigUint, BigUint)> {
        let mut result = Point {
            x: BigUint::from(1_u32),
            y: BigUint::from(1_u32),
            z: BigUint::default(),
        };
        for bit in (0..factor.bits()).rev() {
            result = self.double(&result);
            if factor.bit(bit) {
                result = self.add(&result, &self.generator);
            }
        }
        let inverse = result.z.modinv(&self.p)?;
        let square = &inverse * &inverse % &self.p;
        let x = result.x * &square % &self.p;
        let y = result.y * square * inverse % &self.p;
        Some((x, y))
    }
}

/// 32 bytes, filled with zeros in front.
pub(super) fn fixed(number: &BigUint) -> Vec<u8> {
    let bytes = number.to_bytes_be();
    let mut out = vec![0; 32_usize.saturating_sub(bytes.len())];
    out.extend_from_slice(&bytes);
    out
}

/// A private key from 40 bytes of chance.
pub(super) fn private_key(chance: &[u8]) -> BigUint {
    let curve = curve();
    BigUint::from_bytes_be(chance) % (&curve.n - 1_u32) + 1_u32
}

/// The public key as an uncompressed point.
pub(super) fn public_key(private: &BigUint) -> Option<Vec<u8>> {
    let (x, y) = curve().multiple(private)?;
    Some([vec![4], fixed(&x), fixed(&y)].concat())
}

/// Signs a message's SHA-256; the two numbers of the signature.
pub(super) fn sign(private: &BigUint, message: &[u8]) -> Option<(BigUint, BigUint)> {
    let curve = curve();
    let digest = BigUint::from_bytes_be(&Sha256::digest(message));
    for attempt in 0..=u8::MAX {
        // The secret number follows from key and message, so that none is ever used for two messages.
        let seed = Sha256::new()
            .chain_update(fixed(private))
            .chain_update(message)
            .chain_update([attempt]);
        let nonce = BigUint::from_bytes_be(&seed.finalize()) % (&curve.n - 1_u32) + 1_u32;
        let r = curve.multiple(&nonce)?.0 % &curve.n;
        let s = nonce.modinv(&curve.n)? * ((&digest + &r * private) % &curve.n) % &curve.n;
        if r != BigUint::default() && s != BigUint::default() {
            return Some((r, s));
        }
    }
    None
}
