//! The guide "Add a Windows node", done word by word: on a Linux host with the server and on a Windows host.

use anyhow::{Context as _, Result, bail, ensure};
use transom_testkit::{Running, eventually};

use super::KUBECONFIG;
use crate::{Node, SOON, mixed_lab};

const GUIDE: &str = include_str!("../../../../../docs/guides/windows-node.md");
/// The server's address in the guide.
const ADDRESS: &str = "10.0.0.1";

/// A block of the guide: what stands behind the fence, and the lines of it.
struct Block {
    title: &'static str,
    lines: Vec<&'static str>,
}

fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = GUIDE.lines();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("```") {
            let lines = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(Block { title, lines });
        }
    }
    blocks
}

/// Two hosts, and what was started on them for good.
struct Reader {
    server: Node,
    windows: Node,
    running: Vec<Running>,
}

impl Reader {
    fn follow(&mut self, block: &Block) -> Result<()> {
        match block.title {
            "sh server" => block.lines.iter().try_for_each(|line| self.on_server(line)),
            "bat windows" => block
                .lines
                .iter()
                .try_for_each(|line| self.on_windows(line)),
            "bat windows instead" => block.lines.iter().try_for_each(|line| self.instead(line)),
            "yaml file=hello.yaml" => {
                let text = block.lines.join("\n");
                self.server.host.write("/root/hello.yaml", text)
            }
            other => bail!("nobody does a block `{other}`"),
        }
    }

    fn on_server(&mut self, line: &str) -> Result<()> {
        let host = &self.server.host;
        let line = line.replace(ADDRESS, &host.address().to_string());
        if line.starts_with("transom server") {
            self.running.push(host.spawn(line.split(' '))?);
            return Ok(());
        }
        eventually(&line, SOON * 2, || {
            let command = host
                .command(["sh", "-c", &line])
                .folder("/root")
                .variable("KUBECONFIG", KUBECONFIG);
            let output = command.run()?.success()?;
            ensure!(!output.stdout.is_empty(), "it printed nothing");
            // The person carries the token over.
            if line == "transom token create" {
                let path = r"C:\Transom\token.txt";
                self.windows.host.write(path, &output.stdout)?;
            }
            Ok(())
        })
    }

    /// What was started on Windows last is ended, and something takes its place.
    fn instead(&mut self, line: &str) -> Result<()> {
        let agent = self.running.pop().context("nothing runs")?;
        agent.kill()?;
        let host = &self.windows.host;
        let line = line.replace(ADDRESS, &self.server.host.address().to_string());
        let command = host.command(line.split(' ')).folder(r"C:\Transom");
        command.run()?.success()?;
        Ok(())
    }

    fn on_windows(&mut self, line: &str) -> Result<()> {
        let host = &self.windows.host;
        let line = line.replace(ADDRESS, &self.server.host.address().to_string());
        let agent = host
            .command(line.split(' '))
            .folder(r"C:\Transom")
            .spawn()?;
        self.running.push(agent);
        Ok(())
    }
}

#[test]
fn the_guide_to_a_windows_node_does_what_it_says() {
    let (_lab, [server, windows]) = mixed_lab("guide").unwrap();
    let mut reader = Reader {
        server,
        windows,
        running: Vec::new(),
    };
    for block in blocks() {
        reader
            .follow(&block)
            .with_context(|| block.lines.join("\n"))
            .unwrap();
    }
    let page = eventually("the page of the pod", SOON, || {
        let url = format!("http://{}:8080/", reader.windows.host.address());
        let answer = reader.server.host.http_get(&url)?;
        Ok(answer.body)
    });
    let page = page.unwrap();
    assert!(page.contains("hello-windows"), "{page}");
}
