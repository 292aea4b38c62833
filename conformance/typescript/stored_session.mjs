// Runs one prompt, then reads the stored session through the SDK.
import { params, printMessages, printNote, options, sdk } from './harness.mjs'

await printMessages(sdk.query({ prompt: params.prompts[0], options }), async message => {
  if (message.type !== 'result') return
  const session = message.session_id
  printNote('info', await sdk.getSessionInfo(session))
  printNote('messages', await sdk.getSessionMessages(session))
  const agents = await sdk.listSubagents(session)
  printNote('agents', await Promise.all(agents.map(agent => sdk.getSubagentMessages(session, agent))))
})
