// Lets `wrangler dev` give a Worker the AI binding without an account: the runtime's own class `Ai`, as a deployed
// Worker has it, with a service of the tests where Cloudflare's would be. Used as an unsafe binding:
//
//   [[unsafe.bindings]]
//   name = "AI"
//   type = "workers-ai"
//   dev = { plugin = { package = "<path of this file>", name = "workers-ai" }, options = { address = "127.0.0.1:8099" } }

const SERVICE = "workers-ai:loopback";

const bound = (options) =>
  Object.entries(options.config.env ?? {}).filter(([, binding]) => binding.type === "unsafe:workers-ai");

export const plugins = {
  "workers-ai": {
    bindingTypeDescription: "AI",
    getBindings(options) {
      const fetcher = { name: "fetcher", service: { name: SERVICE } };
      return bound(options).map(([name]) => ({
        name,
        wrapped: { moduleName: "cloudflare-internal:ai-api", innerBindings: [fetcher] },
      }));
    },
    getNodeBindings() {
      return {};
    },
    getServices({ options }) {
      return bound(options).map(([, binding]) => ({
        name: SERVICE,
        external: { address: binding.dev.options.address, http: {} },
      }));
    },
  },
};
