//! Hashed, derived and encrypted texts.

use aes::Aes256;
use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Param};
use crate::machine::Machine;
use crate::value::Value;

use Param::{Str, Uint64};

type Answer = Result<Value, Fault>;

/// What a password's hash costs in steps: tens of milliseconds.
const HASH_PRICE: u64 = 2_000_000;
const BCRYPT_COST: u32 = 10;
const BLOCK: usize = 16;

pub(super) const TABLE: &[Func] = &[
    Func::new("bcrypt", &[Str], |machine, args| {
        Ok(bcrypt_text(machine, arg::bytes(args, 0))?.into())
    }),
    Func::new("htpasswd", &[Str, Str], |machine, args| {
        let user = arg::text(args, 0);
        if user.contains(':') {
            return Ok(format!("invalid username: {user}").into());
        }
        let hash = bcrypt_text(machine, arg::bytes(args, 1))?;
        Ok(format!("{user}:{hash}").into())
    }),
    Func::new("derivePassword", &[Uint64, Str, Str, Str, Str], derive_password),
    Func::new("encryptAES", &[Str, Str], encrypt),
    Func::new("decryptAES", &[Str, Str], decrypt),
];

fn bcrypt_text(machine: &mut Machine<'_>, password: &[u8]) -> Result<String, Fault> {
    if password.len() > 72 {
        let reason = "bcrypt: password length exceeds 72 bytes";
        return Ok(format!("failed to encrypt string with bcrypt: {reason}"));
    }
    machine.spend(HASH_PRICE)?;
    let mut salt = [0; 16];
    machine.entropy(&mut salt);
    let hashed = bcrypt::hash_with_salt(password, BCRYPT_COST, salt)
        .map_err(|error| format!("failed to encrypt string with bcrypt: {error}"))?;
    Ok(hashed.format_for_version(bcrypt::Version::TwoA))
}

fn templates(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        "long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        "medium" => &["CvcnoCvc", "CvcCvcno"],
        "short" => &["Cvcn"],
        "basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        "pin" => &["nnnn"],
        _ => return None,
    })
}

fn alphabet(class: u8) -> &'static [u8] {
    match class {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'A' => b"AEIOUBCDFGHJKLMNPQRSTVWXYZ",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// The Master Password algorithm.
fn derive_password(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    const SEED: &[u8] = b"com.lyndir.masterpassword";
    let counter = match arg::any(args, 0) {
        Value::Uint(_, counter) => *counter as u32,
        _ => 0,
    };
    let kind = arg::text(args, 1);
    let Some(templates) = templates(&kind) else {
        return Ok(format!("cannot find password template {kind}").into());
    };
    machine.spend(HASH_PRICE)?;
    let (user, site) = (arg::bytes(args, 3), arg::bytes(args, 4));
    let length = |text: &[u8]| (text.len() as u32).to_be_bytes();
    let salt = [SEED, &length(user), user].concat();
    let fault = |error: &dyn std::fmt::Display| Fault::new(format!("failed to derive password: {error}"));
    let params = scrypt::Params::new(15, 8, 2).map_err(|error| fault(&error))?;
    let mut key = [0; 64];
    scrypt::scrypt(arg::bytes(args, 2), &salt, &params, &mut key).map_err(|error| fault(&error))?;
    let message = [SEED, &length(site), site, &counter.to_be_bytes()].concat();
    let seed = hmac_sha256(&key, &message);
    let template = templates[usize::from(seed[0]) % templates.len()];
    let derived: Vec<u8> = template
        .bytes()
        .zip(&seed[1..])
        .map(|(class, byte)| alphabet(class)[usize::from(*byte) % alphabet(class).len()])
        .collect();
    Ok(derived.into())
}

/// The key is as long as the hash's block.
fn hmac_sha256(key: &[u8; 64], message: &[u8]) -> [u8; 32] {
    let pad = |with: u8| key.map(|byte| byte ^ with);
    let inner = Sha256::new()
        .chain_update(pad(0x36))
        .chain_update(message)
        .finalize();
    Sha256::new()
        .chain_update(pad(0x5c))
        .chain_update(inner)
        .finalize()
        .into()
}

fn cipher(password: &[u8]) -> Aes256 {
    let mut key = [0; 32];
    let length = password.len().min(32);
    key[..length].copy_from_slice(&password[..length]);
    Aes256::new(&Array::from(key))
}

fn encrypt(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let text = arg::bytes(args, 1);
    if text.is_empty() {
        return Ok("".into());
    }
    machine.spend_bytes(text.len().saturating_mul(4))?;
    let cipher = cipher(arg::bytes(args, 0));
    let padding = BLOCK - text.len() % BLOCK;
    let mut padded = text.to_vec();
    padded.resize(text.len() + padding, padding as u8);
    let mut previous = [0; BLOCK];
    machine.entropy(&mut previous);
    let mut out = previous.to_vec();
    for chunk in padded.chunks_exact(BLOCK) {
        let mut block = previous;
        block
            .iter_mut()
            .zip(chunk)
            .for_each(|(byte, plain)| *byte ^= plain);
        let mut block = Array::from(block);
        cipher.encrypt_block(&mut block);
        previous = block.into();
        out.extend_from_slice(&previous);
    }
    Ok(STANDARD.encode(out).into())
}

fn decrypt(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let text = arg::bytes(args, 1);
    if text.is_empty() {
        return Ok("".into());
    }
    machine.spend_bytes(text.len().saturating_mul(4))?;
    let bytes = STANDARD
        .decode(text)
        .map_err(|error| format!("illegal base64 data: {error}"))?;
    if bytes.len() < 2 * BLOCK || bytes.len() % BLOCK != 0 {
        return Err("crypto/cipher: input not full blocks".into());
    }
    let cipher = cipher(arg::bytes(args, 0));
    let mut out = Vec::with_capacity(bytes.len());
    for pair in bytes.windows(2 * BLOCK).step_by(BLOCK) {
        let mut block = [0; BLOCK];
        block.copy_from_slice(&pair[BLOCK..]);
        let mut block = Array::from(block);
        cipher.decrypt_block(&mut block);
        out.extend(
            block
                .iter()
                .zip(&pair[..BLOCK])
                .map(|(byte, before)| byte ^ before),
        );
    }
    let padding = usize::from(out.last().copied().unwrap_or(0));
    match out.len().checked_sub(padding) {
        Some(length) => {
            out.truncate(length);
            Ok(out.into())
        }
        None => Err(format!(
            "runtime error: slice bounds out of range [:{}]",
            out.len() as i64 - padding as i64
        )
        .into()),
    }
}
