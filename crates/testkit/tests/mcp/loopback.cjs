// Loaded before a server: whatever it wants to listen on, it gets a free port of the loopback interface, and says which.
const net = require("node:net");
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...words) {
  this.once("listening", () => process.stdout.write(`port ${this.address().port}\n`));
  return listen.call(this, { host: "127.0.0.1", port: 0 }, words.find((word) => typeof word === "function"));
};
