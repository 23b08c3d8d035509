//! Large prime numbers from the host's chance.

use num_bigint::BigUint;

use crate::error::Fault;
use crate::machine::Machine;

/// What a test of one candidate costs in steps, per 64 bits cubed.
const TEST_PRICE: u64 = 2;
/// Rounds of Miller and Rabin's test: the chance of an error is below 2^-80, and for random numbers far below.
const ROUNDS: usize = 20;
const SIEVE: u32 = 10_000;

/// A random number of so many bits, the two highest set.
fn candidate(machine: &Machine<'_>, bits: usize) -> BigUint {
    let mut bytes = vec![0; bits.div_ceil(8)];
    machine.entropy(&mut bytes);
    let mut number = BigUint::from_bytes_be(&bytes);
    for extra in bits..bytes.len() * 8 {
        number.set_bit(extra as u64, false);
    }
    number.set_bit(bits as u64 - 1, true);
    number.set_bit(bits as u64 - 2, true);
    number.set_bit(0, true);
    number
}

fn small_primes() -> Vec<u32> {
    let mut composite = vec![false; SIEVE as usize];
    let mut primes = Vec::new();
    for number in 2..SIEVE {
        if !composite[number as usize] {
            primes.push(number);
            (number * 2..SIEVE)
                .step_by(number as usize)
                .for_each(|multiple| composite[multiple as usize] = true);
        }
    }
    primes
}

/// A prime of so many bits.
pub(super) fn prime(machine: &mut Machine<'_>, bits: usize) -> Result<BigUint, Fault> {
    search(
        machine,
        &small_primes(),
        |machine| candidate(machine, bits),
        &BigUint::from(2_u32),
        1 << 14,
    )
}

/// A prime `p` such that `q` divides `p - 1`.
pub(super) fn prime_above(machine: &mut Machine<'_>, bits: usize, q: &BigUint) -> Result<BigUint, Fault> {
    let step = q * 2_u32;
    let start = |machine: &Machine<'_>| {
        let number = candidate(machine, bits);
        let rest = &number % &step;
        number - rest + 1_u32
    };
    search(machine, &small_primes(), start, &step, 1 << 14)
}

/// Walks from a random start in steps; what small primes divide is passed over without a test.
fn search(
    machine: &mut Machine<'_>,
    primes: &[u32],
    start: impl Fn(&Machine<'_>) -> BigUint,
    step: &BigUint,
    length: u32,
) -> Result<BigUint, Fault> {
    loop {
        let base = start(machine);
        let bits = base.bits();
        let price = (bits / 64).pow(3) * TEST_PRICE;
        let remainder = |number: &BigUint, prime: u32| {
            let rest = number % prime;
            rest.to_u32_digits().first().copied().unwrap_or(0)
        };
        let residues: Vec<(u32, u32, u32)> = primes
            .iter()
            .map(|&prime| (prime, remainder(&base, prime), remainder(step, prime)))
            .collect();
        for at in 0..length {
            let divisible = residues.iter().any(|&(prime, rest, step)| {
                (u64::from(rest) + u64::from(at) * u64::from(step)) % u64::from(prime) == 0
            });
            if divisible {
                continue;
            }
            machine.spend(price)?;
            let number = &base + step * at;
            if number.bits() == bits && is_prime(machine, &number) {
                return Ok(number);
            }
        }
        machine.spend(u64::from(length))?;
    }
}

fn is_prime(machine: &Machine<'_>, number: &BigUint) -> bool {
    let one = BigUint::from(1_u32);
    let less = number - &one;
    let twos = less.trailing_zeros().unwrap_or(0);
    let odd = &less >> twos;
    let is_witness = |base: &BigUint| {
        let mut power = base.modpow(&odd, number);
        if power == one || power == less {
            return false;
        }
        for _ in 1..twos {
            power = &power * &power % number;
            if power == less {
                return false;
            }
        }
        true
    };
    if is_witness(&BigUint::from(2_u32)) {
        return false;
    }
    (1..ROUNDS).all(|_| {
        let mut bytes = [0; 16];
        machine.entropy(&mut bytes);
        let base = BigUint::from_bytes_be(&bytes) % &less + 2_u32;
        !is_witness(&base)
    })
}
