// Drives the simulator with the package proxmox-api and prints what it saw as JSON.
"use strict";
const { proxmoxApi } = require("proxmox-api");

async function main() {
  const [host, port, tokenID, tokenSecret, username, password] = process.argv.slice(2);
  const byToken = proxmoxApi({ host, port: Number(port), tokenID, tokenSecret });
  const seen = {};
  seen.version = (await byToken.version.$get()).release;
  seen.nodes = (await byToken.nodes.$get()).map((node) => node.node).sort();
  const byTicket = proxmoxApi({ host, port: Number(port), username, password });
  const node = byTicket.nodes.$("pve1");
  const template = await node.qemu.$(9000).config.$get();
  seen.template = template.name;
  const upid = await node.qemu.$(9000).clone.$post({ newid: 150, name: "from-node", full: true, storage: "ceph" });
  for (let i = 0; i < 600; i += 1) {
    const task = await node.tasks.$(upid).status.$get();
    seen.clone = task.exitstatus;
    if (task.status === "stopped") break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await node.qemu.$(150).snapshot.$post({ snapname: "s1" });
  const names = [];
  for (const one of seen.nodes) {
    for (const vm of await byToken.nodes.$(one).qemu.$get({ full: true })) names.push(vm.name);
  }
  seen.machines = names.sort();
  seen.config = (await node.qemu.$(150).config.$get()).name;
  console.log(JSON.stringify(seen));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
