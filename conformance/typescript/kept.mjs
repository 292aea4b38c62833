// Runs one prompt, then reads the stored session through the SDK.
import { asked, follow, note, options, sdk } from './stage.mjs'

await follow(sdk.query({ prompt: asked.prompts[0], options }), async message => {
  if (message.type !== 'result') return
  const session = message.session_id
  note('info', await sdk.getSessionInfo(session))
  note('messages', await sdk.getSessionMessages(session))
  const agents = await sdk.listSubagents(session)
  note('agents', await Promise.all(agents.map(agent => sdk.getSubagentMessages(session, agent))))
})
