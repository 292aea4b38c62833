// Messages: streaming, stopping, queueing, going back, attachments, and output that wants to be more than text.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { becomes, card, eventually, gone, journey, log, see, send } from './harness.mjs'
import { call, textOf } from './model.mjs'

const MODE = { name: 'Mode', exact: true }

/** Whether a process runs. */
function isRunning (pid) {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

function limitBypass (world, seconds) {
  writeFileSync(join(world.dir, 'config.json'), JSON.stringify({ limits: { bypass_s: seconds } }))
}

journey('J-10 a lost connection leaves no gap and nothing twice', {}, async world => {
  const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(' ')
  const gate = world.model.gate()
  world.model.on('tell me', { blocks: [{ type: 'text', text: words }], gate, after: 4 })
  const { id } = await world.session('tell me')
  const page = await world.open(`/s/${id}`)
  const answer = log(page).getByRole('article', { name: 'Assistant' })
  await see(answer.getByText('word3'))
  world.expectedErrors = [/WebSocket|ERR_|Failed to load/]
  await page.context().setOffline(true)
  await page.evaluate(() => window.dispatchEvent(new Event('offline')))
  assert.match(await answer.textContent(), /word3/)
  gate.open()
  await world.resting(id)
  await page.context().setOffline(false)
  await see(answer.getByText('word59'))
  await becomes(page, async () => (await answer.locator('.markdown').textContent()).trim(), words)
  await becomes(page, () => answer.count(), 1)

  // The host goes and comes back, as after a sleep: the page goes on from where it was.
  await world.stopHost()
  await see(page.getByRole('status', { name: 'Connection' }).getByText('Reconnecting…'))
  await see(answer.getByText('word59'))
  await world.startHost()
  await see(page.getByRole('status', { name: 'Connection' }).getByText('Connected'))
  await send(page, 'and now')
  await see(log(page).getByText('Done.'))
  await becomes(page, () => log(page).getByRole('article', { name: 'You' }).count(), 2)
})

journey('J-11 stop ends a command and a text', {}, async world => {
  world.model.on('sleep', call('Bash', { command: 'echo $$ > pid.txt; sleep 600' }), 'Never said.')
  const gate = world.model.gate()
  world.model.on('talk', { blocks: [{ type: 'text', text: 'I talk and talk and talk without an end, it seems.' }], gate, after: 1 })
  world.model.on('hi again', 'Still here.')
  const { id } = await world.session('sleep', { mode: 'default' })
  const page = await world.open(`/s/${id}`)
  await card(page, 'Bash').getByRole('button', { name: 'Allow once' }).click()
  await eventually(page, async () => world.exists('pid.txt') && world.file('pid.txt').trim() !== '', 'the command runs')
  await page.getByRole('button', { name: 'Stop' }).click()
  await world.resting(id)
  await gone(page.getByRole('button', { name: 'Stop' }))
  await eventually(page, () => !isRunning(Number(world.file('pid.txt'))), 'the command is gone')
  await send(page, 'talk')
  await see(log(page).getByText('I talk and talk'))
  await page.keyboard.press('Escape')
  await see(page.getByText('Press Escape again'))
  // The second one counts within three seconds; a busy machine may need another pair.
  await eventually(page, async () => {
    if (await page.getByRole('button', { name: 'Stop' }).count() === 0) return true
    await page.keyboard.press('Escape')
    return false
  }, 'Escape stops the turn')
  gate.open()
  await send(page, 'hi again')
  await see(log(page).getByText('Still here.'))
})

journey('J-12 queued messages keep their order and can be taken back', {}, async world => {
  const gate = world.model.gate()
  world.model.on('long work', async () => { await gate.opened; return call('Bash', { command: 'touch ran.txt' }) }, 'First turn ended.')
  world.model.on('second wish', 'Second done.')
  world.model.on('third wish', 'Third done.')
  world.model.on('steer left', 'Steered.')
  const { id } = await world.session('long work')
  const page = await world.open(`/s/${id}`)
  await see(page.getByRole('button', { name: 'Stop' }))
  await send(page, 'second wish')
  await send(page, 'third wish')
  const queue = page.getByRole('list', { name: 'Queued messages' })
  await eventually(page, async () => await queue.getByRole('listitem').count() === 2, 'two are queued')
  await queue.getByRole('listitem').filter({ hasText: 'second wish' }).getByRole('button', { name: 'Take back' }).click()
  await eventually(page, async () => await queue.getByRole('listitem').count() === 1, 'one is queued')
  // The event that shortens the list and the answer that brings the text back travel separately.
  await becomes(page, () => page.getByRole('textbox', { name: 'Message' }).inputValue(), 'second wish')
  await page.getByRole('combobox', { name: 'Deliver' }).selectOption('next')
  await send(page, 'steer left')
  await world.until(id, frame => frame.subtype === 'queued' && frame.content === 'steer left')
  gate.open()
  await card(page, 'Bash').getByRole('button', { name: 'Allow once' }).click()
  await see(log(page).getByText('Third done.'))
  const asked = world.model.requests.map(textOf)
  const first = text => asked.findIndex(request => request.includes(text))
  assert.ok(first('steer left') > 0 && first('steer left') < first('third wish'))
  assert.equal(first('second wish'), -1)
  await gone(queue)
})

journey('J-13 diffs of long, foreign and deleted text can be read', {}, async world => {
  const lines = Array.from({ length: 5000 }, (_, index) => `line ${index + 1}`)
  writeFileSync(join(world.project, 'long.txt'), lines.join('\n') + '\n')
  writeFileSync(join(world.project, 'word.txt'), 'Größe: klein 漢字 🙂\r\nzweite Zeile\r\n')
  const changed = lines.map((line, index) => index % 2 ? line : `${line} changed`).join('\n') + '\n'
  world.model.on('edit all', call('Read', { file_path: join(world.project, 'word.txt') }), call('Edit', { file_path: join(world.project, 'word.txt'), old_string: 'klein 漢字 🙂', new_string: 'groß 漢字 🙂' }),
    call('Read', { file_path: join(world.project, 'long.txt') }), call('Write', { file_path: join(world.project, 'long.txt'), content: changed }), call('Bash', { command: 'rm word.txt' }), 'All edited.')
  const { id } = await world.session('edit all')
  const page = await world.open(`/s/${id}`)
  const edit = card(page, 'Edit')
  await see(edit.locator('mark').getByText('groß'))
  await see(edit.locator('[data-number="1"]'))
  await see(edit.getByText('zweite Zeile'))
  await edit.getByRole('button', { name: 'Allow once' }).click()
  const write = card(page, 'Write')
  await see(write.getByText('line 1 changed'))
  await write.getByRole('button', { name: /^Show .* more lines$/ }).click()
  await eventually(page, async () => await write.locator('tr').count() > 500, 'more lines are drawn')
  assert.ok(await write.locator('tr').count() <= 2100)
  const box = page.getByRole('textbox', { name: 'Message' })
  await box.focus()
  await page.keyboard.type('typing')
  await becomes(page, () => box.inputValue(), 'typing')
  await write.getByRole('button', { name: 'Allow once' }).click()
  await card(page, 'Bash').getByRole('button', { name: 'Allow once' }).click()
  await see(log(page).getByText('All edited.'))
  assert.equal(world.file('long.txt'), changed)
  assert.equal(world.exists('word.txt'), false)
  const files = page.getByRole('complementary', { name: 'Details' }).getByRole('list', { name: 'Files changed' })
  await see(files.getByText('long.txt'))
})

journey('J-18 fork and rewind delete nothing', {}, async world => {
  for (const number of [1, 2, 3, 4]) world.model.on(`step ${number}`, call('Write', { file_path: join(world.project, `f${number}.txt`), content: `content ${number}\n` }), `Did step ${number}.`)
  world.model.on('on the branch', 'Branched.')
  world.model.on('on the trunk', 'Trunk goes on.')
  const { id } = await world.session('step 1', { mode: 'acceptEdits' })
  const page = await world.open(`/s/${id}`)
  await see(log(page).getByText('Did step 1.'))
  for (const number of [2, 3, 4]) {
    await send(page, `step ${number}`)
    await see(log(page).getByText(`Did step ${number}.`))
  }
  await gone(page.getByRole('button', { name: 'Stop' }))
  await log(page).getByRole('article', { name: 'Assistant' }).filter({ hasText: 'Did step 4.' }).getByRole('button', { name: 'Fork from here' }).click()
  await eventually(page, async () => !page.url().endsWith(id), 'the fork is open')
  await send(page, 'on the branch')
  await see(log(page).getByText('Branched.'))
  await page.goto(`${world.url}/s/${id}`)
  await send(page, 'on the trunk')
  await see(log(page).getByText('Trunk goes on.'))
  await becomes(page, async () => (await world.api('GET', '/v1/sessions')).sessions.length, 2)
  await gone(page.getByRole('button', { name: 'Stop' }))

  await log(page).getByRole('article', { name: 'You' }).filter({ hasText: 'step 2' }).getByRole('button', { name: 'Rewind to here' }).click()
  const dialog = page.getByRole('dialog', { name: 'Rewind' })
  await see(dialog.getByRole('list', { name: 'Files that change' }).getByText('f3.txt'))
  assert.equal(world.exists('f3.txt'), true)
  await dialog.getByRole('checkbox', { name: /^Conversation/ }).uncheck()
  await dialog.getByRole('button', { name: 'Rewind' }).click()
  await see(page.getByText('Rewound. Nothing was deleted.'))
  await becomes(page, () => [1, 2, 3, 4].map(number => world.exists(`f${number}.txt`)), [true, false, false, false])
  await page.getByRole('button', { name: 'Undo' }).click()
  await see(page.getByText('The rewind was undone.').first())
  await becomes(page, () => [1, 2, 3, 4].map(number => world.file(`f${number}.txt`)), [1, 2, 3, 4].map(number => `content ${number}\n`))
})

journey('J-19 model and mode change in mid-session, and bypass ends by itself', { prepare: async world => limitBypass(world, 3600), configFile: true }, async world => {
  world.model.on('just do it', call('Bash', { command: 'touch bypassed.txt' }), 'Just done.')
  const { id } = await world.session('hello')
  await world.resting(id)
  const page = await world.open(`/s/${id}`)
  const model = page.getByRole('combobox', { name: 'Model' })
  await eventually(page, async () => await model.locator('option').count() > 1, 'models are listed')
  const values = await model.locator('option').evaluateAll(options => options.map(option => option.value))
  const other = values.find(value => /haiku|opus/.test(value)) ?? values.at(-1)
  await model.selectOption(other)
  await see(log(page).getByText(/^Model: /))
  await send(page, 'hello again')
  await eventually(page, async () => world.model.requests.length >= 2, 'the model is asked again')
  assert.notEqual(world.model.requests.at(-1).model, world.model.requests[0].model)
  await world.resting(id)

  const mode = page.getByRole('combobox', MODE)
  await mode.selectOption('bypassPermissions')
  const dialog = page.getByRole('dialog', { name: 'Bypass permissions' })
  await see(dialog.getByText(world.project))
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await becomes(page, () => mode.inputValue(), 'default')
  await mode.selectOption('bypassPermissions')
  await dialog.getByRole('button', { name: 'Bypass permissions' }).click()
  await see(page.getByText('Bypass', { exact: true }))
  await send(page, 'just do it')
  await see(log(page).getByText('Just done.'))
  assert.equal(world.exists('bypassed.txt'), true)

  // It ends with the host, and after its limit.
  world.expectedErrors = [/WebSocket|ERR_|Failed to load/]
  await world.resting(id)
  await world.stopHost()
  limitBypass(world, 1)
  await world.startHost()
  await becomes(page, () => mode.inputValue(), 'default')
  await see(page.getByRole('status', { name: 'Connection' }).getByText('Connected'))
  const before = (await world.events(id)).length
  await mode.selectOption('bypassPermissions')
  await dialog.getByRole('button', { name: 'Bypass permissions' }).click()
  const modes = events => events.filter(event => event.seq > before && event.frame.subtype === 'settings' && event.frame.mode).map(event => event.frame.mode)
  await world.until(id, (_, events) => modes(events).length === 2)
  assert.deepEqual(modes(await world.events(id)), ['bypassPermissions', 'default'])
  await becomes(page, () => mode.inputValue(), 'default')
  await gone(page.getByText('Bypass', { exact: true }))
})

journey('J-20 a used budget is said clearly and the sums agree', { flags: ['--max-budget-usd', '0.02'] }, async world => {
  world.model.usage = { input_tokens: 2000, output_tokens: 100 }
  const { id } = await world.session('spend a little')
  await world.resting(id)
  const page = await world.open(`/s/${id}`)
  for (let turn = 0; turn < 12; turn++) {
    if (await page.getByText(/budget/i).count()) break
    await send(page, `more ${turn}`)
    await gone(page.getByRole('button', { name: 'Stop' }))
    await world.until(id, (frame, events) => frame.type === 'result' && events.filter(event => event.frame.type === 'result').length >= turn + 2)
  }
  await see(log(page).getByText(/budget/i))
  const results = (await world.events(id)).map(event => event.frame).filter(frame => frame.type === 'result')
  const { rows } = await world.api('GET', '/v1/usage?by=session')
  const row = rows.find(row => row.key === id)
  assert.equal(row.turns, results.length)
  const spent = (await world.api('GET', `/v1/sessions/${id}`)).cost_usd
  assert.ok(Math.abs(row.cost_usd - spent) < 1e-4, `${row.cost_usd} and ${spent}`)
  await page.getByRole('link', { name: 'Usage' }).click()
  await see(page.getByRole('table', { name: 'Usage' }).getByRole('row', { name: /^Sum/ }))

  // With more to spend the session goes on.
  world.expectedErrors = [/WebSocket|ERR_|Failed to load/]
  await world.stopHost()
  world.options = { ...world.options, flags: ['--max-budget-usd', '10'] }
  await world.startHost()
  await page.goto(`${world.url}/s/${id}`)
  await send(page, 'go on with more')
  const { frame: last } = await world.until(id, (frame, events) => frame.type === 'result' && events.filter(event => event.frame.type === 'result').length > results.length)
  assert.deepEqual([last.subtype, last.is_error], ['success', false])
})

journey('J-21 files, commands, pictures and dropped files', { phone: true }, async world => {
  writeFileSync(join(world.project, 'needle.md'), '# Needle')
  world.model.on('look at', 'I see it.')
  const { id } = await world.session('hello')
  await world.resting(id)
  const page = await world.open(`/s/${id}`)
  const box = page.getByRole('textbox', { name: 'Message' })
  await box.focus()
  await page.keyboard.type('look at @need')
  await see(page.getByRole('listbox', { name: 'Files' }).getByRole('option', { name: 'needle.md' }))
  await page.keyboard.press('Enter')
  await becomes(page, () => box.inputValue(), 'look at @needle.md ')
  const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const give = (kind, files) => box.evaluate((element, { kind, files }) => {
    const transfer = new DataTransfer()
    for (const { name, type, base64 } of files) transfer.items.add(new File([Uint8Array.from(atob(base64), character => character.charCodeAt(0))], name, { type }))
    if (kind === 'paste') element.dispatchEvent(new ClipboardEvent('paste', { clipboardData: transfer, bubbles: true, cancelable: true }))
    else element.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }))
  }, { kind, files })
  await give('paste', [{ name: 'shot.png', type: 'image/png', base64: picture }])
  await give('drop', ['a.txt', 'b.txt', 'c.txt'].map(name => ({ name, type: 'text/plain', base64: btoa(`text of ${name}`) })))
  const attachments = page.getByRole('list', { name: 'Attachments' }).getByRole('listitem')
  await eventually(page, async () => await attachments.count() === 4 && await attachments.getByText(/ B$/).count() === 4, 'four are uploaded')
  await box.evaluate(element => {
    const transfer = new DataTransfer()
    transfer.items.add(new File([new Uint8Array(40 << 20)], 'huge.bin'))
    element.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }))
  })
  await see(page.getByRole('alert').getByText(/40 MB.*limit is 32 MB/))
  await page.getByRole('button', { name: 'Send' }).click()
  await see(log(page).getByText('I see it.'))
  const request = world.model.requests.at(-1)
  assert.match(textOf(request), new RegExp(picture.slice(0, 40).replace(/[+/]/g, '\\$&')))
  for (const name of ['a.txt', 'b.txt', 'c.txt']) assert.match(textOf(request), new RegExp(name))
  await box.focus()
  await page.keyboard.type('/cle')
  await see(page.getByRole('listbox', { name: 'Commands' }).getByRole('option', { name: '/clear' }))
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+A')
  await page.keyboard.press('Delete')
})

const HOSTILE = [
  '<script>window.hacked = 1</script>', '<img src=x onerror="window.hacked = 1">', '<svg onload="window.hacked = 1"><script>window.hacked = 1</script></svg>',
  '[click](javascript:window.hacked=1)', '[data](data:text/html;base64,PHNjcmlwdD4=)', '![picture](https://evil.example/track.png)', '<iframe src="https://evil.example"></iframe>',
  '<style>*{display:none}</style>', '<a href="javascript:window.hacked=1">anchor</a>', 'evil \u202etxt.exe\u202c name', '\u001b[31mred\u001b[0m \u001b]0;title\u0007'
]

journey('J-22 hostile output stays text', {}, async world => {
  const text = HOSTILE.join('\n\n')
  writeFileSync(join(world.project, 'hostile.txt'), `${text}\n${'x'.repeat(1 << 20)}\n`)
  world.model.on('be evil', call('Bash', { command: `cat hostile.txt; touch x # ${HOSTILE[0]}`, description: HOSTILE[1] }), text)
  const { id } = await world.session('be evil')
  const page = await world.open(`/s/${id}`)
  await see(card(page, 'Bash').getByText('<script>', { exact: false }))
  await card(page, 'Bash').getByRole('button', { name: 'Allow once' }).click()
  const answer = log(page).getByRole('article', { name: 'Assistant' })
  await see(answer)
  await gone(page.getByRole('button', { name: 'Stop' }))
  await see(answer.getByText('ESC'))
  const shown = await answer.textContent()
  for (const part of ['<script>window.hacked = 1</script>', 'onerror=', '<iframe', '<style>', 'javascript:window.hacked=1', 'U+202E', 'ESC', 'https://evil.example/track.png']) assert.ok(shown.includes(part), part)
  assert.doesNotMatch(shown, /[\u202e\u001b]/)
  assert.equal(await answer.locator('script, iframe, style, img, svg:not(.icon), a[href^="javascript"], a[href^="data"]').count(), 0)
  await page.evaluate(() => { for (const link of document.querySelectorAll('.markdown a')) link.click() })
  assert.equal(await page.evaluate(() => window.hacked), undefined)
  assert.equal(page.context().pages().length, 1)
  await page.reload()
  await see(answer)
})
