//! The few questions to the kernel that a pod's network needs. A connection belongs to the network
//! namespace of the thread that opened it.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoBridgePort, InfoData, InfoKind, InfoPortData, InfoPortKind, InfoVeth, LinkAttribute,
    LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

const LARGEST_ANSWER: usize = 64 * 1024;

pub(super) struct Links {
    socket: Socket,
}

impl Links {
    pub(super) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    fn ask(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answers = Vec::new();
        let mut buffer = vec![0; LARGEST_ANSWER];
        loop {
            let count = self.socket.recv(&mut &mut buffer[..], 0)?;
            let mut rest = &buffer[..count];
            while !rest.is_empty() {
                let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(io::Error::other)?;
                let length = usize::try_from(answer.header.length).map_err(io::Error::other)?;
                match answer.payload {
                    NetlinkPayload::InnerMessage(inner) => {
                        answers.push(inner);
                        if flags & (NLM_F_DUMP | NLM_F_ACK) == 0 {
                            return Ok(answers);
                        }
                    }
                    NetlinkPayload::Error(error) => {
                        return match error.code {
                            None => Ok(answers),
                            Some(code) => Err(io::Error::from_raw_os_error(-code.get())),
                        };
                    }
                    NetlinkPayload::Done(_) => return Ok(answers),
                    _ => {}
                }
                // Answers are padded to four bytes.
                let step = length.next_multiple_of(4).max(16).min(rest.len());
                rest = &rest[step..];
            }
        }
    }

    /// The number of a link; `None` if there is none of that name.
    pub(super) fn find(&mut self, name: &str) -> io::Result<Option<u32>> {
        let mut message = LinkMessage::default();
        message
            .attributes
            .push(LinkAttribute::IfName(name.to_owned()));
        match self.ask(RouteNetlinkMessage::GetLink(message), 0) {
            Ok(answers) => Ok(answers.iter().find_map(|answer| match answer {
                RouteNetlinkMessage::NewLink(link) => Some(link.header.index),
                _ => None,
            })),
            Err(error) if error.raw_os_error() == Some(nix::libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn index(&mut self, name: &str) -> io::Result<u32> {
        let found = self.find(name)?;
        found.ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("there is no link {name}"))
        })
    }

    /// The names of all links.
    pub(super) fn names(&mut self) -> io::Result<Vec<String>> {
        let answers = self.ask(
            RouteNetlinkMessage::GetLink(LinkMessage::default()),
            NLM_F_DUMP,
        )?;
        let links = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewLink(link) => Some(link),
            _ => None,
        });
        Ok(links
            .flat_map(|link| link.attributes)
            .filter_map(|attribute| match attribute {
                LinkAttribute::IfName(name) => Some(name),
                _ => None,
            })
            .collect())
    }

    pub(super) fn set_up(&mut self, name: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = self.index(name)?;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.ask(RouteNetlinkMessage::SetLink(message), NLM_F_ACK)?;
        Ok(())
    }

    pub(super) fn add_bridge(&mut self, name: &str, alias: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]),
        ];
        match self.ask(
            RouteNetlinkMessage::NewLink(message),
            NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
        ) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => drop(made?),
        }
        self.set_alias(name, alias)
    }

    /// A mark that says whose a link is.
    fn set_alias(&mut self, name: &str, alias: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = self.index(name)?;
        message.attributes = vec![LinkAttribute::IfAlias(alias.to_owned())];
        self.ask(RouteNetlinkMessage::SetLink(message), NLM_F_ACK)?;
        Ok(())
    }

    /// A pair of links: `name` here, as a port of `bridge`, and `peer` in another namespace.
    pub(super) fn add_pair(
        &mut self,
        name: &str,
        bridge: &str,
        peer: &str,
        namespace: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let mut other = LinkMessage::default();
        other.attributes = vec![
            LinkAttribute::IfName(peer.to_owned()),
            LinkAttribute::NetNsFd(namespace.as_raw_fd()),
        ];
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::Controller(self.index(bridge)?),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
            ]),
        ];
        self.ask(
            RouteNetlinkMessage::NewLink(message),
            NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
        )?;
        self.set_hairpin(name)?;
        self.set_up(name)
    }

    /// A pod that asks for a service may be the one who answers: its own frames have to come back.
    fn set_hairpin(&mut self, name: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = self.index(name)?;
        message.header.interface_family = AddressFamily::Bridge;
        message.attributes = vec![LinkAttribute::LinkInfo(vec![
            LinkInfo::PortKind(InfoPortKind::Bridge),
            LinkInfo::PortData(InfoPortData::BridgePort(vec![InfoBridgePort::HairpinMode(
                true,
            )])),
        ])];
        message.header.interface_family = AddressFamily::Unspec;
        self.ask(RouteNetlinkMessage::SetLink(message), NLM_F_ACK)?;
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) -> io::Result<()> {
        let Some(index) = self.find(name)? else {
            return Ok(());
        };
        let mut message = LinkMessage::default();
        message.header.index = index;
        match self.ask(RouteNetlinkMessage::DelLink(message), NLM_F_ACK) {
            // Its namespace ended at the same moment.
            Err(error) if error.raw_os_error() == Some(nix::libc::ENODEV) => Ok(()),
            removed => removed.map(drop),
        }
    }

    pub(super) fn add_address(
        &mut self,
        name: &str,
        address: IpAddr,
        prefix: u8,
    ) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.index = self.index(name)?;
        message.header.prefix_len = prefix;
        message.header.family = family(address);
        message.attributes = vec![
            AddressAttribute::Address(address),
            AddressAttribute::Local(address),
        ];
        self.ask(
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE,
        )?;
        Ok(())
    }

    pub(super) fn add_default_route(&mut self, gateway: IpAddr) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(gateway);
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        let address = match gateway {
            IpAddr::V4(address) => RouteAddress::Inet(address),
            IpAddr::V6(address) => RouteAddress::Inet6(address),
        };
        message.attributes = vec![RouteAttribute::Gateway(address)];
        self.ask(
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE,
        )?;
        Ok(())
    }
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
