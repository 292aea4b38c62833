// The v2 session interface of SDK 0.2: runs the prompts in a new session, or in a resumed one (`params.resume`), with a
// permission callback and a hook if there is a `params.answer`.
import { asked, follow, note, options, sdk } from './stage.mjs'

if (asked.answer) {
  options.canUseTool = async (tool, input) => {
    note('question', tool)
    return { ...asked.answer, updatedInput: input }
  }
  options.hooks = { PreToolUse: [{ hooks: [async input => { note('hook', input.tool_name); return {} }] }] }
}
const session = asked.resume
  ? sdk.unstable_v2_resumeSession(asked.resume, options)
  : sdk.unstable_v2_createSession(options)
async function* turns() {
  for (const prompt of asked.prompts) {
    await session.send(prompt)
    yield* session.stream()
    note('session', session.sessionId)
  }
  session.close()
}
await follow(turns())
