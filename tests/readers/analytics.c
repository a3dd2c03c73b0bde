/* SPDX-License-Identifier: MPL-2.0 */
/* Stands in for GStreamer's analytics library where that is older than 1.26: the functions that superpixel calls and those with
 * which the tests read back, over a metadata of its own. Values of entries and relations are kept as they come. */
#include <gst/gst.h>
#include <gst/video/video.h>

typedef enum { SEGMENTATION, OBJECT, TRACKING } Kind;

typedef struct {
  Kind kind;
  GstBuffer *mask;
  GArray *ids;
  gint box[4];
  GQuark type;
  gfloat confidence;
  guint64 identity;
  GstClockTime first, last;
} Entry;

typedef struct {
  guint one, other;
  gint kind;
} Relation;

typedef struct {
  GstMeta meta;
  GArray *entries, *relations;
} RelationMeta;

typedef struct {
  guint id;
  RelationMeta *meta;
} Mtd;

static void clear_entry(gpointer data) {
  Entry *entry = data;
  gst_clear_buffer(&entry->mask);
  g_clear_pointer(&entry->ids, g_array_unref);
}

static GType api_type(void) {
  static const gchar *tags[] = {NULL};
  static GType type;
  if (g_once_init_enter(&type)) {
    g_once_init_leave(&type, gst_meta_api_type_register("SuperpixelStandInMetaAPI", tags));
  }
  return type;
}

static gboolean init(GstMeta *meta, gpointer params, GstBuffer *buffer) {
  RelationMeta *relations = (RelationMeta *)meta;
  relations->entries = g_array_new(FALSE, TRUE, sizeof(Entry));
  g_array_set_clear_func(relations->entries, clear_entry);
  relations->relations = g_array_new(FALSE, TRUE, sizeof(Relation));
  return TRUE;
}

static void release(GstMeta *meta, GstBuffer *buffer) {
  RelationMeta *relations = (RelationMeta *)meta;
  g_array_unref(relations->entries);
  g_array_unref(relations->relations);
}

static const GstMetaInfo *info(void);

static gboolean transform(GstBuffer *to, GstMeta *meta, GstBuffer *from, GQuark type, gpointer data) {
  RelationMeta *source = (RelationMeta *)meta;
  RelationMeta *copy = (RelationMeta *)gst_buffer_add_meta(to, info(), NULL);
  for (guint i = 0; i < source->entries->len; i++) {
    Entry entry = g_array_index(source->entries, Entry, i);
    if (entry.mask) gst_buffer_ref(entry.mask);
    if (entry.ids) g_array_ref(entry.ids);
    g_array_append_val(copy->entries, entry);
  }
  g_array_append_vals(copy->relations, source->relations->data, source->relations->len);
  return TRUE;
}

static const GstMetaInfo *info(void) {
  static const GstMetaInfo *registered;
  if (g_once_init_enter((gsize *)&registered)) {
    g_once_init_leave((gsize *)&registered, (gsize)gst_meta_register(api_type(), "SuperpixelStandInMeta",
                                                sizeof(RelationMeta), init, release, transform));
  }
  return registered;
}

RelationMeta *gst_buffer_get_analytics_relation_meta(GstBuffer *buffer) {
  return (RelationMeta *)gst_buffer_get_meta(buffer, api_type());
}

RelationMeta *gst_buffer_add_analytics_relation_meta_full(GstBuffer *buffer, const gsize *params) {
  g_return_val_if_fail(gst_buffer_is_writable(buffer), NULL);
  g_return_val_if_fail(params && params[0] > 0 && params[1] > 0, NULL);
  return (RelationMeta *)gst_buffer_add_meta(buffer, info(), NULL);
}

static gboolean add(RelationMeta *meta, Entry entry, Mtd *mtd) {
  g_return_val_if_fail(meta && mtd, FALSE);
  *mtd = (Mtd){meta->entries->len, meta};
  g_array_append_val(meta->entries, entry);
  return TRUE;
}

gboolean gst_analytics_relation_meta_add_segmentation_mtd(RelationMeta *meta, GstBuffer *mask, gint type, gsize count,
                                                          const guint *ids, gint x, gint y, guint w, guint h, Mtd *mtd) {
  Entry entry = {.kind = SEGMENTATION, .mask = mask, .box = {x, y, (gint)w, (gint)h}};
  GstVideoMeta *video = gst_buffer_get_video_meta(mask);
  g_return_val_if_fail(video && type == 1, FALSE);
  g_return_val_if_fail(video->format == GST_VIDEO_FORMAT_GRAY8 || video->format == GST_VIDEO_FORMAT_GRAY16_LE ||
                           video->format == GST_VIDEO_FORMAT_GRAY16_BE,
                       FALSE);
  entry.ids = g_array_new(FALSE, FALSE, sizeof(guint));
  g_array_append_vals(entry.ids, ids, (guint)count);
  return add(meta, entry, mtd);
}

gboolean gst_analytics_relation_meta_add_od_mtd(RelationMeta *meta, GQuark type, gint x, gint y, gint w, gint h,
                                                gfloat confidence, Mtd *mtd) {
  return add(meta, (Entry){.kind = OBJECT, .type = type, .box = {x, y, w, h}, .confidence = confidence}, mtd);
}

gboolean gst_analytics_relation_meta_add_tracking_mtd(RelationMeta *meta, guint64 identity, GstClockTime first, Mtd *mtd) {
  return add(meta, (Entry){.kind = TRACKING, .identity = identity, .first = first, .last = first}, mtd);
}

static Entry *entry(const Mtd *mtd) { return &g_array_index(mtd->meta->entries, Entry, mtd->id); }

gboolean gst_analytics_tracking_mtd_update_last_seen(Mtd *mtd, GstClockTime last) {
  g_return_val_if_fail(entry(mtd)->kind == TRACKING, FALSE);
  entry(mtd)->last = last;
  return TRUE;
}

gboolean gst_analytics_relation_meta_set_relation(RelationMeta *meta, gint kind, guint one, guint other) {
  Relation relation = {one, other, kind};
  g_return_val_if_fail(one < meta->entries->len && other < meta->entries->len, FALSE);
  g_array_append_val(meta->relations, relation);
  return TRUE;
}

/* Functions for readers. */

gsize gst_analytics_relation_get_length(const RelationMeta *meta) { return meta->entries->len; }

gint gst_analytics_relation_meta_get_relation(const RelationMeta *meta, guint one, guint other) {
  for (guint i = 0; i < meta->relations->len; i++) {
    Relation *relation = &g_array_index(meta->relations, Relation, i);
    if (relation->one == one && relation->other == other) return relation->kind;
  }
  return 0;
}

static gboolean get(RelationMeta *meta, guint id, Kind kind, Mtd *mtd) {
  *mtd = (Mtd){id, meta};
  return id < meta->entries->len && entry(mtd)->kind == kind;
}

gboolean gst_analytics_relation_meta_get_segmentation_mtd(RelationMeta *meta, guint id, Mtd *mtd) {
  return get(meta, id, SEGMENTATION, mtd);
}

gboolean gst_analytics_relation_meta_get_od_mtd(RelationMeta *meta, guint id, Mtd *mtd) {
  return get(meta, id, OBJECT, mtd);
}

gboolean gst_analytics_relation_meta_get_tracking_mtd(RelationMeta *meta, guint id, Mtd *mtd) {
  return get(meta, id, TRACKING, mtd);
}

GstBuffer *gst_analytics_segmentation_mtd_get_mask(const Mtd *mtd, gint *x, gint *y, guint *w, guint *h) {
  *x = entry(mtd)->box[0], *y = entry(mtd)->box[1];
  *w = (guint)entry(mtd)->box[2], *h = (guint)entry(mtd)->box[3];
  return gst_buffer_ref(entry(mtd)->mask);
}

gsize gst_analytics_segmentation_mtd_get_region_count(const Mtd *mtd) { return entry(mtd)->ids->len; }

guint gst_analytics_segmentation_mtd_get_region_id(const Mtd *mtd, gsize index) {
  return g_array_index(entry(mtd)->ids, guint, index);
}

GQuark gst_analytics_od_mtd_get_obj_type(const Mtd *mtd) { return entry(mtd)->type; }

gboolean gst_analytics_od_mtd_get_location(const Mtd *mtd, gint *x, gint *y, gint *w, gint *h, gfloat *confidence) {
  *x = entry(mtd)->box[0], *y = entry(mtd)->box[1], *w = entry(mtd)->box[2], *h = entry(mtd)->box[3];
  *confidence = entry(mtd)->confidence;
  return TRUE;
}

gboolean gst_analytics_tracking_mtd_get_info(const Mtd *mtd, guint64 *identity, GstClockTime *first, GstClockTime *last,
                                             gboolean *lost) {
  *identity = entry(mtd)->identity, *first = entry(mtd)->first, *last = entry(mtd)->last, *lost = FALSE;
  return TRUE;
}
