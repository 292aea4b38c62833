// Drives the engine with the Kimi Agent SDK; prints what it saw as JSON.
import {
  ProtocolClient,
  createSession,
  forkSession,
  listSessions,
  parseSessionEvents,
} from '@moonshot-ai/kimi-agent-sdk'

const { action, workDir, sessionId, prompts = [], options = {}, decision } = JSON.parse(process.argv[2])
const executable = process.env.ENGINE

async function run(session, prompt, response) {
  const turn = session.prompt(prompt)
  const events = []
  for await (const event of turn) {
    events.push(event)
    if (event.type === 'ApprovalRequest') await turn.approve(event.payload.id, response)
  }
  return { events, result: await turn.result }
}

const actions = {
  async turns() {
    const session = createSession({ workDir, sessionId, executable, ...options })
    const turns = []
    for (const prompt of prompts) turns.push(await run(session, prompt, decision ?? 'approve'))
    await session.close()
    return { sessionId: session.sessionId, commands: session.slashCommands.map(command => command.name), turns }
  },
  async fork() {
    const fork = await forkSession({ workDir, sourceSessionId: sessionId, turnIndex: 0 })
    const session = createSession({ workDir, sessionId: fork.sessionId, executable })
    const turns = [await run(session, prompts[0], 'approve')]
    await session.close()
    return { sessionId: fork.sessionId, turns }
  },
  async stored() {
    const sessions = await listSessions(workDir)
    const events = await parseSessionEvents(workDir, sessions[0].id)
    return { sessions, kinds: events.map(event => event.type) }
  },
  async hook() {
    const client = new ProtocolClient()
    const calls = []
    const handler = async request => {
      calls.push(request)
      return decision
    }
    const hello = await client.start({
      workDir,
      executablePath: executable,
      yoloMode: true,
      hooks: [{ id: 'guard', event: 'PreToolUse', handler }],
    })
    const stream = client.sendPrompt(prompts[0])
    const events = []
    for await (const event of stream.events) events.push(event)
    const result = await stream.result
    await client.stop()
    return { hello, calls, events, result }
  },
}

console.log(JSON.stringify(await actions[action]()))
process.exit(0)
