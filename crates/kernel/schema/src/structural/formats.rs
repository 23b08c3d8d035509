//! `format`: which names are known, and what each asks of a string.
//!
//! A format that upstream does not know for a type is ignored, so unknown names compile to [`Format::None`]. The checks
//! accept exactly what upstream's do, including its liberties (leading zeros in IPv4, Scala durations, optional dashes
//! in UUIDs); they are written by hand because the equivalent regular expressions cost megabytes when compiled.

mod dates;
mod mail;
mod net;
mod numbers;

use fairway_kernel_scalar::names;

use super::node::Type;

/// A known format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    None,
    Int32,
    Int64,
    Float,
    Double,
    BsonObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    /// Spelled `date-time`.
    DateTime,
    /// The same, spelled `datetime`.
    DateTimeBare,
    ShortName,
    LongName,
}

impl Format {
    /// The format of a schema of this type; names that do not apply to the type are dropped.
    pub(super) fn parse(name: &str, schema_type: Type) -> Self {
        match schema_type {
            Type::Any | Type::String => Self::of_string(name),
            Type::Integer => match name {
                "int32" => Self::Int32,
                "int64" => Self::Int64,
                _ => Self::None,
            },
            Type::Number => match name {
                "float" => Self::Float,
                "double" => Self::Double,
                _ => Self::None,
            },
            _ => Self::None,
        }
    }

    fn of_string(name: &str) -> Self {
        match name.replace('-', "").as_str() {
            "bsonobjectid" => Self::BsonObjectId,
            "uri" => Self::Uri,
            "email" => Self::Email,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "cidr" => Self::Cidr,
            "mac" => Self::Mac,
            "uuid" => Self::Uuid,
            "uuid3" => Self::Uuid3,
            "uuid4" => Self::Uuid4,
            "uuid5" => Self::Uuid5,
            "isbn" => Self::Isbn,
            "isbn10" => Self::Isbn10,
            "isbn13" => Self::Isbn13,
            "creditcard" => Self::CreditCard,
            "ssn" => Self::Ssn,
            "hexcolor" => Self::HexColor,
            "rgbcolor" => Self::RgbColor,
            "byte" => Self::Byte,
            "password" => Self::Password,
            "date" => Self::Date,
            "duration" => Self::Duration,
            "datetime" if name.contains('-') => Self::DateTime,
            "datetime" => Self::DateTimeBare,
            "k8sshortname" => Self::ShortName,
            "k8slongname" => Self::LongName,
            _ => Self::None,
        }
    }

    /// The name as schemas spell it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float => "float",
            Self::Double => "double",
            Self::BsonObjectId => "bsonobjectid",
            Self::Uri => "uri",
            Self::Email => "email",
            Self::Hostname => "hostname",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Cidr => "cidr",
            Self::Mac => "mac",
            Self::Uuid => "uuid",
            Self::Uuid3 => "uuid3",
            Self::Uuid4 => "uuid4",
            Self::Uuid5 => "uuid5",
            Self::Isbn => "isbn",
            Self::Isbn10 => "isbn10",
            Self::Isbn13 => "isbn13",
            Self::CreditCard => "creditcard",
            Self::Ssn => "ssn",
            Self::HexColor => "hexcolor",
            Self::RgbColor => "rgbcolor",
            Self::Byte => "byte",
            Self::Password => "password",
            Self::Date => "date",
            Self::Duration => "duration",
            Self::DateTime => "date-time",
            Self::DateTimeBare => "datetime",
            Self::ShortName => "k8s-short-name",
            Self::LongName => "k8s-long-name",
        }
    }

    /// Whether it says something about numbers.
    pub(super) fn is_numeric(self) -> bool {
        matches!(self, Self::Int32 | Self::Int64 | Self::Float | Self::Double)
    }

    /// Whether a string is of this format.
    pub(super) fn accepts(self, text: &str) -> bool {
        match self {
            Self::None | Self::Int32 | Self::Int64 | Self::Float | Self::Double | Self::Password => true,
            Self::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            Self::Uri => net::is_request_uri(text),
            Self::Email => mail::is_address(text),
            Self::Hostname => net::is_hostname(text),
            Self::Ipv4 => text.contains('.') && net::is_ip_sloppy(text),
            Self::Ipv6 => text.contains(':') && text.parse::<std::net::Ipv6Addr>().is_ok(),
            Self::Cidr => net::is_cidr_sloppy(text),
            Self::Mac => net::is_mac(text),
            Self::Uuid => numbers::is_uuid(text, None),
            Self::Uuid3 => numbers::is_uuid(text, Some((b'3', false))),
            Self::Uuid4 => numbers::is_uuid(text, Some((b'4', true))),
            Self::Uuid5 => numbers::is_uuid(text, Some((b'5', true))),
            Self::Isbn => numbers::is_isbn10(text) || numbers::is_isbn13(text),
            Self::Isbn10 => numbers::is_isbn10(text),
            Self::Isbn13 => numbers::is_isbn13(text),
            Self::CreditCard => numbers::is_credit_card(text),
            Self::Ssn => numbers::is_ssn(text),
            Self::HexColor => numbers::is_hex_color(text),
            Self::RgbColor => numbers::is_rgb_color(text),
            Self::Byte => numbers::is_base64(text),
            Self::Date => dates::is_date(text),
            Self::Duration => dates::is_duration(text),
            Self::DateTime | Self::DateTimeBare => dates::is_date_time(text),
            Self::ShortName => text.len() <= 63 && names::is_dns1123_label(text).is_empty(),
            Self::LongName => names::is_dns1123_subdomain(text).is_empty(),
        }
    }
}

#[cfg(test)]
mod tests;
