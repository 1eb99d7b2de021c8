//! The systems that a release is built for.

use crate::repository::XtaskResult;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DistTarget {
    /// One static binary for every Linux.
    Musl,
    /// For systems with the glibc of the build machine, or a newer one.
    Gnu,
}

impl DistTarget {
    const ALL: [Self; 2] = [Self::Musl, Self::Gnu];

    pub fn parse(triple: &str) -> XtaskResult<Self> {
        Self::ALL.into_iter().find(|target| target.triple() == triple).ok_or_else(|| {
            let known = Self::ALL.map(Self::triple).join(" or ");
            format!("--target must be {known}, not `{triple}`")
        })
    }

    /// The name that rustc uses.
    pub fn triple(self) -> &'static str {
        match self {
            Self::Musl => "x86_64-unknown-linux-musl",
            Self::Gnu => "x86_64-unknown-linux-gnu",
        }
    }

    /// Without the vendor, which says nothing to people.
    fn platform(self) -> String {
        self.triple().replace("-unknown", "")
    }

    pub fn is_static(self) -> bool {
        self == Self::Musl
    }

    /// The name that Debian uses.
    pub fn debian_architecture(self) -> &'static str {
        "amd64"
    }

    pub fn archive_name(self, version: &str) -> String {
        format!("greenroom-{version}-{}.tar.gz", self.platform())
    }

    pub fn deb_name(self, version: &str) -> String {
        format!("greenroom_{}_{}.deb", debian_version(version), self.debian_architecture())
    }
}

/// A tilde sorts before everything, as a pre-release must. After a hyphen, Debian expects a packager's revision.
pub fn debian_version(version: &str) -> String {
    version.replacen('-', "~", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_after_version_and_platform() {
        assert_eq!(DistTarget::Musl.archive_name("0.1.0"), "greenroom-0.1.0-x86_64-linux-musl.tar.gz");
        assert_eq!(DistTarget::Gnu.archive_name("0.1.0"), "greenroom-0.1.0-x86_64-linux-gnu.tar.gz");
        assert_eq!(DistTarget::Musl.deb_name("0.1.0"), "greenroom_0.1.0_amd64.deb");
        assert_eq!(DistTarget::Musl.deb_name("0.2.0-rc.1"), "greenroom_0.2.0~rc.1_amd64.deb");
    }

    #[test]
    fn a_target_is_known_by_its_triple() {
        for target in DistTarget::ALL {
            assert_eq!(DistTarget::parse(target.triple()), Ok(target));
        }
        let unknown = DistTarget::parse("wasm32-wasip1").unwrap_err();
        assert!(unknown.contains("x86_64-unknown-linux-musl or x86_64-unknown-linux-gnu"), "{unknown}");
    }
}
