"""Facts made from templates, that answer none of the questions in `facts.jsonl`."""

from __future__ import annotations

import random

__all__ = ["distractors"]

_ENGLISH = {
    "name": "Olivia Hank Wendy Samir Greta Luis Noor Petra Igor Fiona Kenji Abena Stefan Lucia Ravi Ingrid Malik Joan",
    "dept": "sales|support|design|research|the warehouse|marketing|the help desk|facilities",
    "thing": "a second monitor|a standing fan|a copy of the floor plan|new business cards|a larger desk|access to the "
    "archive|a projector|the visitor badges",
    "day": "Monday|Tuesday|Wednesday|Friday",
    "part": "thumbnail service|billing worker|search gateway|mail relay|session cache|map renderer|coupon engine",
    "symptom": "timeouts|duplicate rows|a blank page|garbled umlauts|high load|missing icons|stale prices",
    "street": "Mill Lane|Station Road|Harbour Street|Elm Avenue|King's Square|Canal Walk",
    "shop": "The bakery|The hardware shop|The bookshop|The pharmacy|The florist|The tailor|The bike shop",
    "item": "cardboard boxes|light bulbs|paper towels|printer cartridges|extension cords|folding chairs|name tags|"
    "storage bins",
    "dish": "mushroom risotto|lamb tagine|fish curry|onion soup|plum cake|pumpkin ravioli|beef noodles",
    "place": "the corner bistro|the canteen|the night market|the station cafe|the harbour grill|the food hall",
    "event": "the trade fair|the spring meetup|the housewarming|the open day|the charity run|the book launch",
    "topic": "solar panels|shipping labels|the new logo|parking permits|the summer party|customs forms|shelf layouts",
}
_CHINESE = {
    "name": "赵敏 钱伟 孙丽 李强 吴磊 郑爽 冯刚 陈雪 褚健 卫红 蒋涛 沈阳 韩梅 杨帆 朱琳 秦朗",
    "dept": "销售部 客服部 设计部 市场部 仓储部 行政部 研究院 培训中心",
    "thing": "一台显示器 新的名片 会议室钥匙 一把椅子 档案权限 投影仪 访客证 储物柜",
    "day": "周一 周二 周四 周五",
    "part": "缩略图服务 计费任务 搜索网关 邮件中继 会话缓存 地图渲染 优惠券引擎 推送模块",
    "symptom": "超时 重复数据 白屏 乱码 负载过高 图标丢失 首次请求缓慢 价格没有更新",
    "street": "人民路 解放街 滨江大道 学院路 南门街 花园巷",
    "shop": "面包店 五金店 书店 药房 花店 裁缝铺 修车行 打印店",
    "item": "纸箱 灯泡 纸巾 墨盒 插线板 折叠椅 胸牌 收纳盒",
    "dish": "蘑菇烩饭 红烧排骨 清蒸鲈鱼 洋葱汤 牛肉面 南瓜粥 酸菜鱼 小笼包",
    "place": "街角小馆 员工食堂 夜市 车站咖啡 码头烤肉 美食广场",
    "event": "展销会 春季聚会 乔迁宴 开放日 公益跑 新书发布会",
    "topic": "太阳能板 物流标签 新商标 停车证 夏日晚会 报关单 语音助手 货架布局",
}
_ENGLISH_TEMPLATES = (
    "{name} from {dept} asked for {thing} on {day}.", "Ticket {number}: the {part} shows {symptom} since {day}.",
    "{name} is out of office until {day}, week {count}.", "The {part} listens on port {number}.",
    "{shop} on {street} closes at {hour} o'clock.", "Ordered {count} {item} for {dept}, order {number}.",
    "{name}'s phone extension is {number}.", "{name} recommends the {dish} at {place}.",
    "Met {name} at {event} to talk about {topic}.", "Paid {count} euros for {item} at {street}.",
    "Room {number} seats {count} people.", "{name} moved to {street} {count}.",
)  # fmt: skip
_CHINESE_TEMPLATES = (
    "{dept}的{name}{day}申请了{thing}。", "工单{number}：{part}从{day}开始出现{symptom}。",
    "{name}第{count}周到{day}才回来上班。",
    "{part}监听端口 {number}。", "{street}的{shop}{hour}点关门。", "给{dept}订了{count}个{item}，订单号{number}。",
    "{name}的分机号是 {number}。", "{name}推荐{place}的{dish}。", "在{event}上和{name}谈了{topic}。",
    "在{street}买{item}花了{count}元。", "{number}会议室能坐{count}个人。", "{name}搬到了{street}{count}号。",
)  # fmt: skip

_PATIENCE = 200


def distractors(count: int) -> list[str]:
    """Half of them in each language; the same ones each time."""
    chosen = random.Random(5)
    found: list[str] = []
    for words, templates in ((_ENGLISH, _ENGLISH_TEMPLATES), (_CHINESE, _CHINESE_TEMPLATES)):
        pool = {key: text.split("|") if "|" in text else text.split() for key, text in words.items()}
        made: dict[str, None] = {}
        missed = 0
        while len(made) < count // 2:
            values = {key: chosen.choice(options) for key, options in pool.items()}
            numbers = {"number": chosen.randrange(1000, 9999), "count": chosen.randrange(5, 90)}
            # One that has nothing new to say is passed over.
            template = templates[(len(made) + missed // _PATIENCE) % len(templates)]
            text = template.format(**values, **numbers, hour=chosen.randrange(5, 11))
            missed += text in made
            made[text] = None
        found += made
    return found
