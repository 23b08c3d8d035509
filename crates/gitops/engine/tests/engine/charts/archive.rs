//! Archives as `helm package` and `tar` make them.

use std::io::Write as _;

use sha2::{Digest as _, Sha256};

/// A tar of these files.
pub(super) fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (path, text) in files {
        let mut header = [0_u8; 512];
        header[..path.len()].copy_from_slice(path.as_bytes());
        header[100..107].copy_from_slice(b"0000644");
        header[124..135].copy_from_slice(format!("{:011o}", text.len()).as_bytes());
        header[148..156].copy_from_slice(b"        ");
        header[156] = b'0';
        header[257..263].copy_from_slice(b"ustar\0");
        header[263..265].copy_from_slice(b"00");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(text.as_bytes());
        out.resize(out.len().div_ceil(512) * 512, 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A chart with one ConfigMap, which says what the values say.
pub(super) fn chart(name: &str, version: &str, says: &str) -> Vec<u8> {
    let head = format!("apiVersion: v2\nname: {name}\nversion: {version}\ndescription: It says {says}\n");
    let values = format!("says: {says}\n");
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}}\ndata:\n  says: {{ .Values.says | quote }}\n  version: {{ .Chart.Version | quote }}\n";
    let files = [
        (format!("{name}/Chart.yaml"), head),
        (format!("{name}/values.yaml"), values),
        (format!("{name}/templates/map.yaml"), template.to_owned()),
    ];
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    gzip(&tar(&files))
}

pub(super) fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
