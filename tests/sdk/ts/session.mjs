// The session interface of the SDK 0.2: one turn after the other.
import { asked, follow, note, options, sdk } from './stage.mjs'

const session = sdk.unstable_v2_createSession(options)
async function* turns() {
  for (const prompt of asked.prompts) {
    await session.send(prompt)
    yield* session.stream()
    note('session', session.sessionId)
  }
  session.close()
}
await follow(turns())
