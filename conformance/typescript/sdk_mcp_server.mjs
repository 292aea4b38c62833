// One prompt with an MCP server in this process. Notes its calls, its status and the result of a server change.
import { params, printMessages, printNote, openInput, options, sdk, z } from './harness.mjs'

const add = sdk.tool('add', 'Adds two numbers.', { a: z.number(), b: z.number() }, async input => {
  printNote('called', input)
  return { content: [{ type: 'text', text: `sum=${input.a + input.b}` }] }
})
const fail = sdk.tool('fail', 'Fails.', {}, async () => { throw new Error('it broke') })
const server = name => sdk.createSdkMcpServer({ name, version: '1.0.0', tools: [add, fail] })
options.mcpServers = { sums: server('sums') }
const input = openInput(params.prompts[0])
const query = sdk.query({ prompt: input, options })
await printMessages(query, async message => {
  if (message.type !== 'result') return
  printNote('status', await query.mcpServerStatus())
  printNote('changed', await query.setMcpServers({ sums: options.mcpServers.sums, more: server('more') }))
  // The new server is still connecting.
  while ((await query.mcpServerStatus()).some(server => server.status === 'pending'));
  input.close()
})
