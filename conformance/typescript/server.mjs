// One prompt with an MCP server in this process. Notes its calls, its status and the result of a server change.
import { asked, follow, note, openInput, options, sdk, z } from './stage.mjs'

const add = sdk.tool('add', 'Adds two numbers.', { a: z.number(), b: z.number() }, async input => {
  note('called', input)
  return { content: [{ type: 'text', text: `sum=${input.a + input.b}` }] }
})
const fail = sdk.tool('fail', 'Fails.', {}, async () => { throw new Error('it broke') })
const server = name => sdk.createSdkMcpServer({ name, version: '1.0.0', tools: [add, fail] })
options.mcpServers = { sums: server('sums') }
const input = openInput(asked.prompts[0])
const query = sdk.query({ prompt: input, options })
await follow(query, async message => {
  if (message.type !== 'result') return
  note('status', await query.mcpServerStatus())
  note('changed', await query.setMcpServers({ sums: options.mcpServers.sums, more: server('more') }))
  // The new server is still connecting.
  while ((await query.mcpServerStatus()).some(server => server.status === 'pending'));
  input.close()
})
